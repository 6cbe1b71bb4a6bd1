"""Which requests may last: watches and connections that were taken over. Timeouts and limits leave them alone."""

from __future__ import annotations

from pilothouse.apiserver.request_info import RequestInfo

_VERBS = frozenset(("watch", "proxy"))
_SUBRESOURCES = frozenset(("attach", "exec", "proxy", "log", "portforward"))


def is_long_running(info: RequestInfo) -> bool:
    if info.is_resource:
        return info.verb in _VERBS or info.subresource in _SUBRESOURCES
    return info.path.startswith("/debug/pprof/")
