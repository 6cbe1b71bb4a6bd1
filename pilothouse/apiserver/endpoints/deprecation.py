"""Deprecated kinds: every answer about one carries a warning that says so, and what to use instead."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.routes import Methods
from pilothouse.apiserver.http import Handler, Request, Response
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


def with_warning(methods: Methods, warning: str) -> Methods:
    """The same handlers, which first put the warning on the answer. Without one they stay as they are."""
    return {method: _warning(handler, warning) for method, handler in methods.items()} if warning else methods


def _warning(handler: Handler, warning: str) -> Handler:
    async def warn(request: Request) -> Response:
        request.warnings.append(warning)
        return await handler(request)

    return warn
