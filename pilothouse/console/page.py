"""The page: files that were built with the package, held in memory, with the policy that browsers show them under."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from pilothouse.apiserver.http import NO_SNIFFING, Headers, Request, Response
from pilothouse.controlplane.errors import StartFailed
from pilothouse.machinery.installation import page_remedy

BUILT: Final = files("pilothouse.console") / "_page"

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
"""Nothing inline, and nothing from any other host."""

SHELL: Final[Headers] = [
    NO_SNIFFING,
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
"""What every answer of the console says to browsers."""


class PageNotBuilt(StartFailed):
    """The message says how to get the page."""


def require_page() -> None:
    """Raises PageNotBuilt if this installation has no page: the package was built where npm could not build it."""
    if not (BUILT / "index.html").is_file():
        raise PageNotBuilt(f"this Pilothouse was installed without the page of its console: {page_remedy()}")


class Page:
    """The built files by their paths."""

    def __init__(self, folder: Traversable = BUILT) -> None:
        self._files = dict(_found(folder, "/")) if folder.is_dir() else {}

    def answer(self, request: Request) -> Response:
        """Names of assets change with their contents, so browsers keep them; the page itself is always asked for."""
        path = "/index.html" if request.path == "/" else request.path
        body = self._files.get(path)
        if body is None:
            return html(404, "Not found.")
        kept = b"public, max-age=31536000, immutable" if path.startswith("/assets/") else b"no-cache"
        return Response(
            200,
            body,
            [
                *_headers(
                    next(
                        (kind for suffix, kind in _TYPES.items() if path.endswith(suffix)), b"application/octet-stream"
                    )
                ),
                (b"cache-control", kept),
            ],
        )


def html(status: int, body: str) -> Response:
    return Response(status, body.encode(), [*_headers(_TYPES[".html"]), (b"cache-control", b"no-store")])


def _headers(content_type: bytes) -> Headers:
    return [(b"content-type", content_type), (b"content-security-policy", _POLICY), *SHELL]


def _found(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        path = prefix + entry.name
        found += _found(entry, path + "/") if entry.is_dir() else [(path, entry.read_bytes())]
    return found
