"""Availability checks: the Service exists and has endpoints for the port; the server answers discovery requests.

A probe sends several concurrent requests. One success suffices, because endpoints of a Service may be starting or
terminating.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.proxy.headers import user_headers
from pilothouse.aggregator.proxy.transport import ProxyTransport, TransportConfig, TransportUnusable
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.outbound.exchange import BackendExchange
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed, DialFailed, get_problem
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver, ServiceUnresolved
from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part

ATTEMPTS = 5
TIMEOUT = 5.0
_PROBER = User("system:kube-aggregator", groups=(SYSTEM_PRIVILEGED_GROUP,))
_TIMED_OUT = f"{DEADLINE_EXCEEDED} (Client.Timeout exceeded while awaiting headers)"


@dataclass(frozen=True, slots=True)
class ServiceName:
    namespace: str
    name: str


class Services(Protocol):
    async def find(self, namespace: str, name: str) -> Json | None:
        """Return the Service, or None. Raises ServiceUnresolved if the answer is unknown at the moment."""

    async def slices(self, namespace: str, service: str) -> Sequence[Json]:
        """Return the EndpointSlices of the Service. Raises ServiceUnresolved."""

    async def follow(self, changed: Callable[[str, str], None], anything: Callable[[], None]) -> None:
        """Run forever, and call `changed` with namespace and name of each Service that changed or whose EndpointSlices
        changed. Call `anything` when changes may have been missed."""


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    services: Services
    place: TransportConfig

    async def problem(self) -> Condition | None:
        """Return the condition of the first problem, in upstream's words; None if all checks pass."""
        place = self.place
        try:
            service = await self.services.find(place.namespace, place.service)
        except ServiceUnresolved as error:
            return _unknown("ServiceAccessError", f"{self._named} cannot be checked due to: {error}")
        if service is None:
            return unavailable("ServiceNotFound", f"{self._named} is not present")
        if service["spec"].get("type") != "ClusterIP":
            return None
        place = self.place
        port = next((port for port in service["spec"].get("ports") or () if port.get("port") == place.port), None)
        if port is None:
            return unavailable("ServicePortError", f"{self._named} is not listening on port {place.port}")
        try:
            slices = await self.services.slices(place.namespace, place.service)
        except ServiceUnresolved as error:
            return _unknown("EndpointsAccessError", f"{self._named} cannot be checked due to: {error}")
        if not slices:
            return unavailable("EndpointsNotFound", f"cannot find endpointslices for {self._named}")
        name = port.get("name") or ""
        if any(_has_endpoint(endpoint_slice, name) for endpoint_slice in slices):
            return None
        message = f"endpointslices for {self._named} have no addresses with port name {quote(name)}"
        return unavailable("MissingEndpoints", message)

    @property
    def _named(self) -> str:
        return f"service/{self.place.service} in {quote(self.place.namespace)}"


def unavailable(reason: str, message: str) -> Condition:
    return Condition(AVAILABLE, "False", reason, message)


def _unknown(reason: str, message: str) -> Condition:
    return Condition(AVAILABLE, "Unknown", reason, message)


def _has_endpoint(endpoint_slice: Json, port_name: str) -> bool:
    endpoints, ports = endpoint_slice.get("endpoints") or (), endpoint_slice.get("ports") or ()
    ready = any(part(endpoint, "conditions").get("ready") is not False for endpoint in endpoints)
    return ready and any(port.get("name") == port_name and port.get("port") is not None for port in ports)


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
