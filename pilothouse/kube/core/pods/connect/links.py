"""Links in what a proxied app answers: those to the app itself must lead through the proxy as well."""

from __future__ import annotations

import gzip
import posixpath
import re
import zlib
from functools import partial
from html import escape, unescape

from yarl import URL

from pilothouse.machinery.dataclass import dataclass

_LINKS = {
    "a": "href",
    "applet": "codebase",
    "area": "href",
    "audio": "src",
    "base": "href",
    "blockquote": "cite",
    "body": "background",
    "button": "formaction",
    "command": "icon",
    "del": "cite",
    "embed": "src",
    "form": "action",
    "frame": "longdesc src",
    "head": "profile",
    "html": "manifest",
    "iframe": "longdesc src",
    "img": "longdesc src usemap",
    "input": "src usemap formaction",
    "ins": "cite",
    "link": "href",
    "object": "classid codebase data usemap",
    "q": "cite",
    "script": "src",
    "source": "src",
    "video": "poster src",
}
"""The attributes of each tag that hold a link."""

_NAMES = "|".join(_LINKS)
# Bounded, so that a page that is no HTML cannot keep the server busy.
_TAG = re.compile(
    rf"""<({_NAMES})\b((?:[^<>"']{{1,2000}}+|"[^"]{{0,2000}}+"|'[^']{{0,2000}}+'){{0,60}}+)>""", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""(?<=\s)([a-zA-Z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_RAW_DEFLATE = -15


@dataclass(frozen=True, slots=True)
class Links:
    """`prefix` is the path at which the client sees the app, and `hosts` are the names by which it may call itself."""

    prefix: str
    hosts: frozenset[str]

    def rewritten(self, link: str) -> str:
        """A link within the app, as seen through the proxy; any other as it is."""
        try:
            url = URL(link, encoded=True)
        except ValueError:
            return link
        other_host = bool(url.raw_authority) and url.raw_authority not in self.hosts
        if other_host or not url.raw_path.startswith("/") or link.startswith("#") or not link:
            return link
        path = url.raw_path
        if not path.startswith(self.prefix):
            path = posixpath.normpath(f"{self.prefix}/{path}") + ("/" if path.endswith("/") else "")
        query = f"?{url.raw_query_string}" if url.raw_query_string else ""
        fragment = f"#{url.raw_fragment}" if url.raw_fragment else ""
        return f"{path}{query}{fragment}"

    def in_page(self, page: bytes, encoding: str) -> bytes:
        """An HTML page with its links rewritten. A page in an encoding that nobody knows is left alone."""
        if encoding == "gzip":
            return gzip.compress(self._in_text(gzip.decompress(page)))
        if encoding == "deflate":
            squeeze = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zlib.DEFLATED, _RAW_DEFLATE)
            return squeeze.compress(self._in_text(zlib.decompress(page, _RAW_DEFLATE))) + squeeze.flush()
        return page if encoding else self._in_text(page)

    def _in_text(self, page: bytes) -> bytes:
        text = page.decode("utf-8", "surrogateescape")
        return _TAG.sub(self._tag, text).encode("utf-8", "surrogateescape")

    def _tag(self, tag: re.Match[str]) -> str:
        names = _LINKS[tag[1].lower()].split()
        return f"<{tag[1]}{_ATTRIBUTE.sub(partial(self._attribute, names), tag[2])}>"

    def _attribute(self, names: list[str], attribute: re.Match[str]) -> str:
        if attribute[1].lower() not in names:
            return attribute[0]
        link = unescape(attribute[2] or attribute[3] or attribute[4] or "")
        return f'{attribute[1]}="{escape(self.rewritten(link))}"'
