"""Locations of logs, streams and ports of a pod, and the rules for proxied addresses.

The server never proxies to addresses of its own machine or to special addresses. The checked address is the address of
the connection: addresses are reformatted, because parsers disagree on `0177.0.0.1`, and host names are resolved once.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from urllib.parse import urlencode

from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kinds.pods import all_containers, node_name
from pilothouse.kube.core.pods.connect.kubelet import KubeletAddress, Kubelets
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import split_scheme_name_port
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_ip_sloppy

_WEBSOCKETS = "ExtendWebSocketsToKubelet"


@dataclass(frozen=True, slots=True)
class StreamLocation:
    """Location of an exec, attach or port-forward stream on the kubelet."""

    target: Target
    speaks_websockets: bool
    """The kubelet declares support for WebSockets; otherwise this server translates."""


class PodLocations:
    def __init__(self, pods: RegistryStore, kubelets: Kubelets) -> None:
        self._pods = pods
        self._kubelets = kubelets

    async def pod(self, ctx: RequestContext, name: str) -> Json:
        """Raises NotFound."""
        return (await self._pods.get(ctx, name, GetOptions())).parse()

    async def log(
        self, pod: Json, container: str, parameters: Iterable[tuple[str, str]], *, verify: bool
    ) -> Target | None:
        """Return the location of the log, or None for an unscheduled pod."""
        container = choose_container(pod, container)
        if not node_name(pod):
            return None
        kubelet = await self._kubelets.locate(node_name(pod))
        path = f"/containerLogs/{namespace_of(pod)}/{name_of(pod)}/{container}"
        return self._target(kubelet, path, parameters, verify=verify)

    async def stream(
        self, pod: Json, action: str, container: str, parameters: Iterable[tuple[str, str]]
    ) -> StreamLocation:
        """Return the location of exec or attach. Raises BadRequest for an unscheduled pod."""
        container = choose_container(pod, container)
        path = f"/{action}/{namespace_of(pod)}/{name_of(pod)}/{container}"
        return await self._stream_location(pod, path, parameters)

    async def port_forward(self, pod: Json, ports: Iterable[int]) -> StreamLocation:
        joined = ",".join(map(str, ports))
        path = f"/portForward/{namespace_of(pod)}/{name_of(pod)}"
        return await self._stream_location(pod, path, [("port", joined)] if joined else [])

    async def _stream_location(self, pod: Json, path: str, parameters: Iterable[tuple[str, str]]) -> StreamLocation:
        node = node_name(pod)
        if not node:
            raise BadRequest(f"pod {name_of(pod)} does not have a host assigned")
        kubelet = await self._kubelets.locate(node)
        return StreamLocation(self._target(kubelet, path, parameters), _WEBSOCKETS in kubelet.features)

    async def proxy(self, ctx: RequestContext, identity: str) -> Target:
        """`identity` is NAME, NAME:PORT or SCHEME:NAME:PORT. The default port is the pod's first declared port."""
        parts = split_scheme_name_port(identity)
        if parts is None:
            raise BadRequest(f"invalid pod request {quote(identity)}")
        pod = await self.pod(ctx, parts.name)
        number = port_number(parts.port) if parts.port else _first_port(pod)
        address = proxyable_address(first_address(pod))
        default = 443 if parts.scheme == "https" else 80
        if (simulated := await self._kubelets.simulated_pod(pod, number or default)) is not None:
            return simulated
        tls = self._kubelets.config.unverified_tls if parts.scheme == "https" else None
        return Target(address, number, "", tls=tls)

    def _target(
        self, kubelet: KubeletAddress, path: str, parameters: Iterable[tuple[str, str]], *, verify: bool = True
    ) -> Target:
        query = urlencode(sorted(parameters, key=lambda pair: pair[0]))
        return self._kubelets.target(kubelet, path, query, verify=verify)


def choose_container(pod: Json, name: str) -> str:
    """Return the named container, or the only container. Raises BadRequest for unknown or ambiguous names."""
    spec = pod.get("spec") or {}
    names = [container.get("name") or "" for container in all_containers(spec)]
    if name:
        if name not in names:
            raise BadRequest(f"container {name} is not valid for pod {name_of(pod)}")
        return name
    regular: list[Json] = spec.get("containers") or []
    if len(regular) == 1:
        return str(regular[0].get("name") or "")
    choice = f", choose one of: [{' '.join(names)}]" if regular else ""
    raise BadRequest(f"a container name must be specified for pod {name_of(pod)}{choice}")


def first_address(pod: Json) -> str:
    status = pod.get("status") or {}
    addresses = status.get("podIPs") or ()
    return str(addresses[0].get("ip") or "") if addresses else ""


def _first_port(pod: Json) -> int:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return next(
        (container["ports"][0].get("containerPort") or 0 for container in containers if container.get("ports")), 0
    )


_BROADCAST = IPv4Address("255.255.255.255")
_CARRY_IPV4_LAST = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""IPv6 networks with an embedded IPv4 address at the end: IPv4-compatible and NAT64."""


def proxyable_address(text: str) -> str:
    """Return the canonical form of an address. Raises BadRequest for an address excluded from proxying."""
    parsed = parse_ip_sloppy(text)
    if parsed is None or not all(map(_is_global_unicast, _meanings(parsed))):
        raise BadRequest("address not allowed")
    return format_ip(parsed)


def as_read(text: str) -> str:
    """Return the canonical form of an address, so that every parser agrees with validation."""
    parsed = parse_ip_sloppy(text)
    return text if parsed is None else format_ip(parsed)


def _is_global_unicast(address: Address) -> bool:
    """Go's rule: private addresses are global unicast, special addresses are not."""
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != _BROADCAST


def _meanings(address: Address) -> Iterator[Address]:
    """Yield the address and embedded IPv4 addresses: the local machine or a gateway may unwrap the address."""
    yield address
    if isinstance(address, IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour))
        if any(address in network for network in _CARRY_IPV4_LAST):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


async def proxyable_address_of(host: str) -> str:
    """Resolve the host. Raises BadRequest if any address of the host is excluded from proxying."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        raise BadRequest(f"lookup {host}: no such host") from None
    if not infos:
        raise BadRequest("no addresses for hostname")
    first, *_ = [proxyable_address(str(sockaddr[0])) for *_, sockaddr in infos]
    return first


def port_number(port: str) -> int:
    """Raises BadRequest."""
    if not (port.isascii() and port.isdigit() and len(port.lstrip("0")) < 6 and int(port) < 2**16):
        raise BadRequest(f"invalid port {quote(port)}")
    return int(port)
