"""The path mux: exact paths first, then the longest prefix, then the not-found handler (upstream's PathRecorderMux).

Paths can be registered and unregistered while requests are served. The index at `/` shows listed paths.

    handle("/apis", a)   handle_prefix("/apis/apps/v1/", b)
    /apis → a            /apis/apps/v1/deployments → b            /apis/ → not found
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.bounded_cache import bounded_cache


class PathRecorderMux:
    """A handler that dispatches by path."""

    _paths: dict[str, Handler]
    _prefixes: dict[str, Handler]  # every key ends in a slash
    _longest: int  # length of the longest prefix
    _listed: set[str]  # subset of the keys of both dicts
    find: Callable[[str], Handler]

    def __init__(self, name: str, not_found: Handler) -> None:
        self.name = name
        self.not_found = not_found
        self._paths = {}
        self._prefixes = {}
        self._longest = 0
        self._listed = set()
        self.find = bounded_cache(entries=4096, key_bytes=256)(self._find)

    def handle(self, path: str, handler: Handler, *, listed: bool = True) -> None:
        """Serve exactly this path."""
        self._register(self._paths, path, handler, listed)

    def handle_prefix(self, prefix: str, handler: Handler, *, listed: bool = True) -> None:
        """Serve all paths with the prefix, unless a longer prefix or an exact path matches."""
        if not prefix.endswith("/"):
            raise ValueError(f'"{prefix}" must end in a trailing slash')
        self._register(self._prefixes, prefix, handler, listed)
        self._longest = max(self._longest, len(prefix))

    def unregister(self, path: str) -> None:
        """Remove a path or prefix; idempotent."""
        self._paths.pop(path, None)
        self._prefixes.pop(path, None)
        self._listed.discard(path)
        self._forget()

    def listed_paths(self) -> list[str]:
        return sorted(self._listed)

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self.find(request.path)(request)

    def _forget(self) -> None:
        """Clear the lookup cache, after paths were added or removed."""
        self.find.cache_clear()  # type: ignore[attr-defined]

    def _find(self, path: str) -> Handler:
        exact = self._paths.get(path)
        return exact if exact is not None else self._longest_prefix(path)

    def _longest_prefix(self, path: str) -> Handler:
        # A prefix ends with a slash, so only slashes of the path can end a match; the last one is the longest.
        end = path.rfind("/", 0, self._longest) + 1
        while end:
            handler = self._prefixes.get(path[:end])
            if handler is not None:
                return handler
            end = path.rfind("/", 0, end - 1) + 1
        return self.not_found

    def _register(self, table: dict[str, Handler], path: str, handler: Handler, listed: bool) -> None:
        if path in table:
            raise ValueError(f'{self.name}: "{path}" is already registered')
        table[path] = handler
        self._forget()
        if listed:
            self._listed.add(path)
