"""One address of an API server: whether it takes connections, whom its certificate is for, and what it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from pilothouse.aggregator.availability.discovery_check import TIMEOUT, send_probe
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportUnusable
from pilothouse.apiserver.outbound.failures import BackendFailed, DialFailed, dial_problem
from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundResponse, read_answer
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import unverified_context
from pilothouse.cli.diagnosis.answers import Asked, judge, served_groups, too_slow
from pilothouse.cli.diagnosis.certificates import described, untrusted
from pilothouse.cli.diagnosis.findings import Finding, FindingOutcome, failed, note, ok
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion

_MOST_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class BackendServer:
    """`identified`: the transport has the front proxy's certificate, so that refusals mean something."""

    target: Target
    transport: ProxyTransport
    identified: bool
    wanted: GroupVersion

    async def examine(self) -> AsyncIterator[Finding]:
        """Ends at the first thing that makes the next one pointless."""
        tcp = await self._tcp()
        yield tcp
        if tcp.outcome is FindingOutcome.FAILED:
            return
        shown = await self._certificate()
        if shown is not None:
            yield shown
        trusted = await self._trusted()
        yield trusted
        if trusted.outcome is not FindingOutcome.FAILED:
            yield await self._discovery()

    async def _tcp(self) -> Finding:
        began = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT):
                _, writer = await asyncio.open_connection(self.target.host, self.target.port)
        except OSError as error:
            advice = f"start the server on port {self.target.port}, and open the network path from this machine"
            return failed("tcp", dial_problem(error, self.target), advice)
        writer.close()
        return ok("tcp", f"{self.target.authority} accepts connections ({_since(began)})")

    async def _certificate(self) -> Finding | None:
        """Return a finding about the server's certificate, whoever signed it; None if there is no connection."""
        try:
            async with asyncio.timeout(TIMEOUT):
                _, writer = await asyncio.open_connection(
                    self.target.host,
                    self.target.port,
                    ssl=unverified_context(),
                    server_hostname=self.target.server_name,
                )
        except (OSError, TimeoutError):
            return None  # the next step says what is wrong
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return described(der)

    async def _trusted(self) -> Finding:
        target, config = self.target, self.transport.config
        try:
            pool = await self.transport.pool()
            pool.give_back(target, await pool.take(replace(target, timeout=TIMEOUT)))
        except TransportUnusable as error:
            return failed("tls", str(error), "set spec.caBundle to certificates in PEM format")
        except DialFailed as error:
            return untrusted(error, config.ca_bundle, TIMEOUT)
        if config.insecure:
            return note("tls", "every certificate is accepted: spec.insecureSkipTLSVerify is set", "use spec.caBundle")
        return ok("tls", f"the certificate is valid for {target.server_name}")

    async def _discovery(self) -> Finding:
        began, url = time.monotonic(), self.target.url
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._ask(self.target)
                seconds = time.monotonic() - began
                others = served_groups(await self._ask(self._groups)) if answer.status == 404 else ()
        except TimeoutError:
            return too_slow("discovery", url, TIMEOUT)
        except (BackendFailed, AnswerTooLarge) as error:
            return failed("discovery", f"{url}: {error}", "check the log of the server: it must answer the aggregator")
        return judge(answer, Asked(url, self.wanted, seconds, self.identified), others)

    @property
    def _groups(self) -> Target:
        return replace(self.target, path="/apis")

    async def _ask(self, target: Target) -> OutboundResponse:
        """Raises BackendFailed, AnswerTooLarge."""
        connection = await (await self.transport.pool()).take(target)
        try:
            send_probe(connection, target)
            return await read_answer(connection, await connection.head(), limit=_MOST_BYTES)
        finally:
            connection.close()


def _since(began: float) -> str:
    return f"{(time.monotonic() - began) * 1000:.1f} ms"
