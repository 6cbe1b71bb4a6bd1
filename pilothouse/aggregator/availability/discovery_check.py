"""Probes an aggregated API server: several concurrent requests for its discovery document.

One success suffices, because endpoints of a Service may be starting or terminating.
"""

from __future__ import annotations

import asyncio

from pilothouse.aggregator.proxy.headers import user_headers
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportUnusable
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed, DialFailed, get_problem
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver, ServiceUnresolved
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

ATTEMPTS = 5
TIMEOUT = 5.0

_PROBER = User("system:kube-aggregator", groups=(SYSTEM_PRIVILEGED_GROUP,))
_TIMED_OUT = f"{DEADLINE_EXCEEDED} (Client.Timeout exceeded while awaiting headers)"


@dataclass(frozen=True, slots=True)
class DiscoveryCheck:
    transport: ProxyTransport
    services: ServiceResolver
    path: str

    async def problem(self) -> str:
        """Return the problem of the last failed attempt; "" if any attempt succeeded."""
        attempts = [asyncio.create_task(self._attempt()) for _ in range(ATTEMPTS)]
        problem = ""
        try:
            for finished in asyncio.as_completed(attempts):
                problem = await finished
                if not problem:
                    return ""
        finally:
            for attempt in attempts:
                attempt.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)
        return problem

    async def _attempt(self) -> str:
        place = self.transport.config
        try:
            address = await self.services.resolve(place.namespace, place.service, place.port)
            tls = await self.transport.tls()
        except (ServiceUnresolved, TransportUnusable) as error:
            return str(error)
        target = Target(address.host, address.port, self.path, tls=tls, timeout=TIMEOUT, server_name=place.server_name)
        try:
            async with asyncio.timeout(TIMEOUT):
                problem = await self._ask(target)
        except TimeoutError:
            problem = f"Get {quote(target.url)}: {_TIMED_OUT}"
        return f"failing or missing response from {target.url}: {problem}" if problem else ""

    async def _ask(self, target: Target, *, fresh: bool = False) -> str:
        """Send one probe. A pooled connection closed by the server is retried: the close says nothing about
        availability."""
        pool = await self.transport.pool()
        try:
            connection = await pool.take(target, fresh=fresh)
        except DialFailed as error:
            return get_problem(error, target)
        try:
            send_probe(connection, target)
            status = (await connection.head()).status
        except BackendFailed as error:
            if not fresh and (error.unprocessed or (connection.reused and error.unanswered)):
                return await self._ask(target, fresh=True)
            return get_problem(error, target)
        finally:
            pool.give_back(target, connection)
        return "" if 200 <= status < 300 else f"bad status from {target.url}: {status}"


def send_probe(connection: BackendExchange, target: Target) -> None:
    """Request the discovery document as a front proxy. Raises BackendFailed."""
    headers = [(b"host", target.authority.encode()), (b"user-agent", b"pilothouse"), *user_headers(_PROBER)]
    connection.send_head("GET", target.resource, headers)
    connection.send_end()
