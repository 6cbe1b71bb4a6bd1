"""Warnings: what any part recorded on the request goes out as Warning headers, each once and within limits."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.http import Handler, Request, Response

# As upstream: long texts are cut once the total is large, and dropped once it is too large.
_CUT_AFTER = 4 * 1024
_CUT_TO = 256
_DROP_AFTER = 16 * 1024


def with_warnings(handler: Handler) -> Handler:
    async def record(request: Request) -> Response:
        response = await handler(request)
        if request.warnings:
            response.headers.extend((b"warning", value.encode()) for value in warning_headers(request.warnings))
        return response

    return record


def warning_headers(warnings: list[str]) -> Iterator[str]:
    """The values of RFC 7234 Warning headers with code 299."""
    unique = list(dict.fromkeys(warnings))
    if sum(map(len, unique)) > _CUT_AFTER:
        unique = [text[:_CUT_TO] for text in unique]
    written = 0
    for warning in unique:
        written += len(warning)
        if written > _DROP_AFTER:
            return
        yield f"299 - {_quoted(warning)}"


def _quoted(warning: str) -> str:
    escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char for char in escaped if char.isprintable()) + '"'
