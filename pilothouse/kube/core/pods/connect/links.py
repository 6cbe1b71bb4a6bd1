"""Links in what a proxied app answers: those to the app itself must lead through the proxy as well."""

from __future__ import annotations

import posixpath
import re

from yarl import URL

from pilothouse.machinery.dataclass import dataclass

_PATH = re.compile(r"[^?#]*")


@dataclass(frozen=True, slots=True)
class Links:
    """`prefix` is the path at which the client sees the app, and `hosts` are the names by which it may call itself."""

    prefix: str
    hosts: frozenset[str]

    def rewritten(self, link: str) -> str:
        """A link within the app, as seen through the proxy; any other as it is."""
        if "//" in link or ":" in link:
            return self._with_host(link)
        if not link.startswith("/"):
            return link
        path = _PATH.match(link)[0]  # type: ignore[index]  # it matches anything
        return self._through_proxy(path) + link[len(path) :]

    def _with_host(self, link: str) -> str:
        """The same for links that may name a host. They are few, and dearer to read."""
        try:
            url = URL(link, encoded=True)
        except ValueError:
            return link
        other_host = bool(url.raw_authority) and url.raw_authority not in self.hosts
        if other_host or not url.raw_path.startswith("/"):
            return link
        query = f"?{url.raw_query_string}" if url.raw_query_string else ""
        fragment = f"#{url.raw_fragment}" if url.raw_fragment else ""
        return f"{self._through_proxy(url.raw_path)}{query}{fragment}"

    def _through_proxy(self, path: str) -> str:
        if path.startswith(self.prefix):
            return path
        if "//" in path or "/." in path:
            return posixpath.normpath(f"{self.prefix}/{path}") + ("/" if path.endswith("/") else "")
        return self.prefix + path
