"""Headers of every response, outermost last: warnings, cache control, HSTS, audit id.

One filter sets all of them, because every filter adds cost to every request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import getrandbits

from pilothouse.apiserver.http import Filter, Handler, Request, Response

_LONGEST_AUDIT_ID = 64
# Responses depend on the user and on time, so proxies must not cache them. Handlers may override this.
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
_MOST_CHARACTERS = 4 * 1024
"""Of all warnings of a response."""
_CUT_TO = 256
"""Characters of a warning, once all together are too many."""
_UNSENDABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search


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


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """Return the values of RFC 7234 Warning headers with code 299.

    If all texts together exceed the limit, long texts are truncated, and nothing is added once the limit is reached.
    A text with control characters is omitted.
    """
    texts = list(dict.fromkeys(filter(None, warnings)))
    shown: list[str] = []
    written, truncates = 0, False
    for position, text in enumerate(texts):
        if truncates and written >= _MOST_CHARACTERS:
            break
        part = text[:_CUT_TO] if truncates else text
        if _UNSENDABLE(part):
            continue
        if not truncates and written + len(part) > _MOST_CHARACTERS:
            truncates = True
            shown = [cut for earlier in texts[: position + 1] if not _UNSENDABLE(cut := earlier[:_CUT_TO])]
            written = sum(map(len, shown))
        else:
            shown.append(part)
            written += len(part)
    return [f"299 - {_quoted(text)}" for text in shown]


def _quoted(warning: str) -> str:
    escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
