"""EgressSelectorConfiguration. Only direct connections are supported.

Validation messages are upstream's. A configured proxy is an error, never replaced by a direct connection.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.controlplane.strict_decoding import Shape, decode
from pilothouse.machinery.field import Errors, duplicate, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

_GROUP, _KIND = "apiserver.k8s.io", "EgressSelectorConfiguration"
_TLS: Shape = {"caBundle": str, "clientKey": str, "clientCert": str, "tlsServerName": str}
_TRANSPORT: Shape = {"tcp": {"url": str, "tlsConfig": _TLS}, "uds": {"udsName": str}}
_SHAPE: Shape = {"egressSelections": [{"name": str, "connection": {"proxyProtocol": str, "transport": _TRANSPORT}}]}

DIRECT, HTTP_CONNECT, GRPC = PROTOCOLS = ("Direct", "HTTPConnect", "GRPC")
NAMES = ("cluster", "controlplane", "etcd")


def read_egress_selections(data: bytes) -> frozenset[str]:
    """Return the names of the networks with direct connections. Raises ValueError."""
    config = decode(data, group=_GROUP, kind=_KIND, versions=dict.fromkeys(("v1beta1", "v1alpha1"), _SHAPE))
    selections = config.get("egressSelections") or []
    if problems := [str(error) for error in _errors(selections)]:
        raise ValueError(f"failed to validate egress selector configuration: {aggregate(problems)}")
    if proxies := [*_proxies(selections)]:
        raise ValueError(f"proxies are not supported by this version: {', '.join(proxies)}")
    return frozenset(_name(selection) for selection in selections)


def check_egress(selector: str, configured: frozenset[str] | None) -> None:
    """Raise ValueError if the egress network of an issuer is not configured."""
    if configured is None:
        raise ValueError(f'oidc: egress lookup required with egress selector type "{selector}"')
    if selector not in configured:
        raise ValueError(f'oidc: egress lookup for "{selector}" is not configured')


def _name(selection: Json) -> str:
    return str(selection.get("name") or "").lower()


def _proxies(selections: list[Json]) -> Iterator[str]:
    for selection in selections:
        if (protocol := (selection.get("connection") or {}).get("proxyProtocol")) != DIRECT:
            yield f"{protocol} of {_name(selection)}"


def _errors(selections: list[Json]) -> Errors:
    path, seen = root("service", "connection"), set[str]()
    for selection in selections:
        connection = selection.get("connection") or {}
        protocol, transport = connection.get("proxyProtocol") or "", connection.get("transport")
        if protocol not in PROTOCOLS:
            yield not_supported(path.child("protocol"), protocol, PROTOCOLS)
        elif protocol == DIRECT and transport is not None:
            yield invalid(path.child("transport"), "direct", "config must be absent for direct connect")
        elif protocol != DIRECT and transport is None:
            yield required(path.child("transport"), f"transport must be set for {protocol}")
    for index, selection in enumerate(selections):
        name = _name(selection)
        if name in seen:
            yield duplicate(path.index(index), name)
        elif name not in NAMES:
            yield not_supported(path, name, NAMES)
        seen.add(name)
