"""The headers that every answer has, whoever made it, outermost last: warnings, cache control, HSTS, audit id.

One filter puts them in, because each that is passed costs every request something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import getrandbits

from pilothouse.apiserver.http import Filter, Handler, Request, Response

_LONGEST_AUDIT_ID = 64
# Answers depend on who asks and on the moment, so nobody in between may keep them. A handler that knows better says so.
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
# As upstream: long texts are cut once the total is large, and dropped once it is too large.
_CUT_AFTER = 4 * 1024
_CUT_TO = 256
_DROP_AFTER = 16 * 1024


def with_answer_headers(hsts_directives: Sequence[str] = ()) -> Filter:
    """Every request has an audit id, the client's own where it sent one. The directives tell browsers to come by TLS
    only, for as long as they say; without any, that header is left out."""
    hsts = [(b"strict-transport-security", "; ".join(hsts_directives).encode())] if hsts_directives else []

    def wrap(handler: Handler) -> Handler:
        async def complete(request: Request) -> Response:
            request.audit_id = request.header(b"audit-id")[:_LONGEST_AUDIT_ID] or _new_id()
            response = await handler(request)
            headers = response.headers
            if request.warnings:
                headers.extend((b"warning", value.encode()) for value in warning_headers(request.warnings))
            if b"cache-control" not in dict(headers):
                headers.append(_CACHE_CONTROL)
            headers += hsts
            headers.append((b"audit-id", request.audit_id.encode("latin-1")))
            return response

        return complete

    return wrap


def _new_id() -> str:
    """A random (version 4) UUID. It only has to differ from others, so the cheap source of randomness will do."""
    digits = f"{getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


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
