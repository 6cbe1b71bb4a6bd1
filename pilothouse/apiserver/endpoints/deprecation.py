"""Deprecated kinds: every response carries a warning that names the replacement."""

from __future__ import annotations

from prometheus_client import Gauge

from pilothouse.apiserver.endpoints.routes import Methods
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind


@dataclass(frozen=True, slots=True)
class Deprecation:
    """`since` and `removed` are releases such as 1.33."""

    since: str
    removed: str = ""
    replacement: GroupVersionKind | None = None

    def warning(self, kind: GroupVersionKind) -> str:
        text = f"{kind.api_version} {kind.kind} is deprecated in v{self.since}+"
        if self.removed:
            text += f", unavailable in v{self.removed}+"
        if self.replacement:
            text += f"; use {self.replacement.api_version} {self.replacement.kind}"
        return text


REQUESTED = Gauge(
    "apiserver_requested_deprecated_apis",
    "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, "
    "resource, subresource, and removed_release.",
    ("group", "version", "resource", "subresource", "removed_release"),
    registry=REGISTRY,
)


def with_warning(methods: Methods, warning: str, removed: str = "") -> Methods:
    """Wrap the handlers so that they warn the client and record the use of a deprecated kind.

    Without a warning the handlers are returned unchanged.
    """
    return {method: _warning(handler, warning, removed) for method, handler in methods.items()} if warning else methods


def _warning(handler: Handler, warning: str, removed: str) -> Handler:
    async def warn(request: Request) -> Response:
        info = request.info
        REQUESTED.labels(info.group, info.version, info.resource, info.subresource, removed).set(1)
        warn_of_deprecation(request, warning, removed)
        return await handler(request)

    return warn


def warn_of_deprecation(request: Request, warning: str, removed: str = "") -> None:
    """Warn the client and annotate the audit event."""
    request.warnings.append(warning)
    request.annotate("k8s.io/deprecated", "true")
    if removed:
        request.annotate("k8s.io/removed-release", removed)
