"""The built files of the page, held in memory, with their security headers."""

from __future__ import annotations

import gzip
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from pilothouse.apiserver.http import NO_SNIFFING, Headers, Request, Response
from pilothouse.controlplane.errors import StartFailed
from pilothouse.machinery.installation import page_remedy

BUILT: Final = files("pilothouse.console") / "_page"

_WORTH_COMPRESSING: Final = 1000
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".woff2": b"font/woff2",
}

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No inline code, and no other hosts."""

SHELL: Final[Headers] = [
    NO_SNIFFING,
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
"""Security headers of every response."""


class PageNotBuilt(StartFailed):
    """The page is missing. The message names the remedy."""


def require_page() -> None:
    """Raises PageNotBuilt if the installed package has no page (built without npm)."""
    if not (BUILT / "index.html").is_file():
        raise PageNotBuilt(f"this Pilothouse was installed without the page of its console: {page_remedy()}")


class Page:
    """The built files by path."""

    def __init__(self, folder: Traversable = BUILT) -> None:
        self._files = dict(_read_files(folder, "/")) if folder.is_dir() else {}
        large = {path: body for path, body in self._files.items() if len(body) >= _WORTH_COMPRESSING}
        self._compressed = {path: gzip.compress(body, mtime=0) for path, body in large.items()}

    def answer(self, request: Request) -> Response:
        """Return a file, compressed if the browser accepts gzip.

        Assets are immutable, because their names contain a hash; the page itself is revalidated.
        """
        path = "/index.html" if request.path == "/" else request.path
        body = self._files.get(path)
        if body is None:
            return html(404, "Not found.")
        kind = next((kind for suffix, kind in _TYPES.items() if path.endswith(suffix)), b"application/octet-stream")
        cache_control = b"public, max-age=31536000, immutable" if path.startswith("/assets/") else b"no-cache"
        headers = [*_headers(kind), (b"cache-control", cache_control), (b"vary", b"accept-encoding")]
        if path in self._compressed and "gzip" in request.header(b"accept-encoding"):
            return Response(200, self._compressed[path], [*headers, (b"content-encoding", b"gzip")])
        return Response(200, body, headers)


def html(status: int, body: str) -> Response:
    return Response(status, body.encode(), [*_headers(_TYPES[".html"]), (b"cache-control", b"no-store")])


def _headers(content_type: bytes) -> Headers:
    return [(b"content-type", content_type), (b"content-security-policy", _POLICY), *SHELL]


def _read_files(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    contents: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        path = prefix + entry.name
        contents += _read_files(entry, path + "/") if entry.is_dir() else [(path, entry.read_bytes())]
    return contents
