"""The path mux: exact paths first, then the longest prefix, then the not-found handler.

Paths can come and go while requests are served. Those registered as listed are what the index at `/` shows.

    handle("/apis", a)   handle_prefix("/apis/apps/v1/", b)
    /apis → a            /apis/apps/v1/deployments → b            /apis/ → not found
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.bounded_cache import bounded_cache


class PathRecorderMux:
    """Is itself a handler."""

    _paths: dict[str, Handler]
    _prefixes: dict[str, Handler]  # every key ends in a slash
    _longest: int  # no prefix is longer
    _listed: set[str]  # a subset of the keys of the other two
    find: Callable[[str], Handler]

    def __init__(self, name: str, not_found: Handler) -> None:
        self.name = name
        self.not_found = not_found
        self._paths = {}
        self._prefixes = {}
        self._longest = 0
        self._listed = set()
        self._forget()

    def handle(self, path: str, handler: Handler, *, listed: bool = True) -> None:
        """Serves exactly this path."""
        self._register(self._paths, path, handler, listed)

    def handle_prefix(self, prefix: str, handler: Handler, *, listed: bool = True) -> None:
        """Serves everything that starts with the prefix, unless a longer prefix or an exact path matches."""
        if not prefix.endswith("/"):
            raise ValueError(f'"{prefix}" must end in a trailing slash')
        self._register(self._prefixes, prefix, handler, listed)
        self._longest = max(self._longest, len(prefix))

    def unregister(self, path: str) -> None:
        """Forgets a path or prefix; one that is not there is no error."""
        self._paths.pop(path, None)
        self._prefixes.pop(path, None)
        self._listed.discard(path)
        self._forget()

    def listed_paths(self) -> list[str]:
        return sorted(self._listed)

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self.find(request.path)(request)

    def _forget(self) -> None:
        """What was found for a path is kept until paths come or go."""
        self.find = bounded_cache(entries=4096, key_bytes=256)(self._find)

    def _find(self, path: str) -> Handler:
        exact = self._paths.get(path)
        return exact if exact is not None else self._longest_prefix(path)

    def _longest_prefix(self, path: str) -> Handler:
        # A prefix ends in a slash, so only the path's own slashes can end one; the last of them is the longest.
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
