"""Headers of every response, outermost last: warnings, cache control, HSTS, audit id.

One filter sets all of them, because every filter adds cost to every request.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import getrandbits

from pilothouse.apiserver.http import Filter, Handler, Request, Response

_LONGEST_AUDIT_ID = 64
# Responses depend on the user and on time, so proxies must not cache them. Handlers may override this.
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
_MOST_CHARACTERS = 4 * 1024
"""Of all warnings of a response."""
_CUT_TO = 256
"""Characters of a warning, once all together are too many."""


def with_answer_headers(hsts_directives: Sequence[str] = ()) -> Filter:
    """Set the headers. The audit id is the client's if it sent one. Without HSTS directives there is no HSTS header."""
    hsts = [(b"strict-transport-security", "; ".join(hsts_directives).encode())] if hsts_directives else []

    def wrap(handler: Handler) -> Handler:
        async def complete(request: Request) -> Response:
            request.audit_id = request.header(b"audit-id")[:_LONGEST_AUDIT_ID] or _new_id()
            response = await handler(request)
            headers = response.headers
            if request.warnings:
                headers.extend((b"warning", value.encode()) for value in warning_headers(request.warnings))
            if request.is_determined:
                if b"cache-control" not in dict(headers):
                    headers.append(_CACHE_CONTROL)
                headers += hsts
            headers.append((b"audit-id", request.audit_id.encode("latin-1")))
            return response

        return complete

    return wrap


def _new_id() -> str:
    """Return a random (version 4) UUID. It need not be unpredictable, so the fast generator is used."""
    digits = f"{getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def warning_headers(warnings: list[str]) -> Iterator[str]:
    """Yield the values of RFC 7234 Warning headers with code 299.

    If all texts together exceed the limit, long texts are truncated, and nothing is added once the limit is reached.
    """
    texts = list(dict.fromkeys(warnings))
    totals = list(accumulate(map(len, texts)))
    if totals and totals[-1] > _MOST_CHARACTERS:
        added = bisect_right(totals, _MOST_CHARACTERS) + 1
        texts = [text[:_CUT_TO] for text in texts]
        totals = list(accumulate(map(len, texts)))
        texts = texts[: max(added, bisect_left(totals, _MOST_CHARACTERS) + 1)]
    for text in texts:
        yield f"299 - {_quoted(text)}"


def _quoted(warning: str) -> str:
    escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char for char in escaped if char.isprintable()) + '"'
