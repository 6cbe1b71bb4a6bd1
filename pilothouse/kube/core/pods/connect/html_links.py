"""Streaming rewriter of links in HTML.

Guarantees: linear time for any input; at most one tag is buffered; everything except links in tags passes byte for
byte. Like upstream's tokenizer: quotes matter in attribute values only, and comments, scripts and similar elements
contain no tags.
"""

from __future__ import annotations

import posixpath
import re
from html import escape, unescape
from typing import Final

from yarl import URL

from pilothouse.machinery.dataclass import dataclass

LONGEST_TAG: Final = 64 * 1024
"""Longer tags pass unchanged."""

_LINKS: Final = {
    b"a": {b"href"},
    b"applet": {b"codebase"},
    b"area": {b"href"},
    b"audio": {b"src"},
    b"base": {b"href"},
    b"blockquote": {b"cite"},
    b"body": {b"background"},
    b"button": {b"formaction"},
    b"command": {b"icon"},
    b"del": {b"cite"},
    b"embed": {b"src"},
    b"form": {b"action"},
    b"frame": {b"longdesc", b"src"},
    b"head": {b"profile"},
    b"html": {b"manifest"},
    b"iframe": {b"longdesc", b"src"},
    b"img": {b"longdesc", b"src", b"usemap"},
    b"input": {b"src", b"usemap", b"formaction"},
    b"ins": {b"cite"},
    b"link": {b"href"},
    b"object": {b"classid", b"codebase", b"data", b"usemap"},
    b"q": {b"cite"},
    b"script": {b"src"},
    b"source": {b"src"},
    b"video": {b"poster", b"src"},
}
"""Tag -> attributes with links."""

_RAW: Final = (b"iframe", b"noembed", b"noframes", b"plaintext", b"script", b"style", b"textarea", b"title", b"xmp")
_ENDS: Final = {name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE) for name in _RAW}
"""Raw text element -> pattern of the closing tag."""
_COMMENT_END: Final = re.compile(rb"-->")
_LONGEST_END: Final = 16

_START: Final = re.compile(rb"<(?:(!--)|([a-zA-Z][^\s/>]{0,63}+)(?=[\s/>]))")
_PARTIAL_START: Final = re.compile(rb"<(?:!-?|[a-zA-Z][^\s/>]{0,63})?\Z")
"""An incomplete tag start at the end of the input. If the name contains another bracket, the first bracket counts."""
_LONGEST_START: Final = 80
# All quantifiers are possessive: no backtracking.
_VALUE = rb"""\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|((?!["'])[^\s>]*+))"""
_ATTRIBUTE: Final = re.compile(rb"(?=[^\s/>])(=?[^\s/>=]*+)(?:%b|(?!\s*+=))" % _VALUE)
_REST_OF_TAG: Final = re.compile(rb"(?:[\s/]++|(?=[^\s/>])=?[^\s/>=]*+(?:%b|(?!\s*+=)))*+>" % _VALUE)


class LinkRewriter:
    """Rewrites a page chunk by chunk."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._held = b""  # input that is incomplete so far
        self._text_end: re.Pattern[bytes] | None = None  # end of the current comment or raw element

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        page, at = self._held + data, 0
        out: list[bytes] = []
        while at < len(page):
            reached = self._skip_text(page, at, out) if self._text_end is not None else self._next(page, at, out, last)
            if reached == at:
                break
            at = reached
        if last:
            out.append(page[at:])
        self._held = b"" if last else page[at:]
        return b"".join(out)

    def _skip_text(self, page: bytes, at: int, out: list[bytes]) -> int:
        """Copy up to the end of the comment or raw element, or up to the last position certainly inside. Return the
        position."""
        assert self._text_end is not None
        if end := self._text_end.search(page, at):
            self._text_end = None
            reached = end.end()
        else:
            reached = max(at, len(page) - _LONGEST_END)
        out.append(page[at:reached])
        return reached

    def _next(self, page: bytes, at: int, out: list[bytes], last: bool) -> int:
        """Copy through the next tag. Return the position after the tag, or the start of an incomplete tag."""
        start = _START.search(page, at)
        if start is None:
            opened = _PARTIAL_START.search(page, max(at, len(page) - _LONGEST_START))
            reached = len(page) if opened is None or last else opened.start()
            out.append(page[at:reached])
            return reached
        out.append(page[at : start.start()])
        if start[1]:
            self._text_end = _COMMENT_END
            out.append(b"<!")  # the dashes that open a comment may also close the comment
            return start.start() + 2
        return self._tag(page, start, out, last)

    def _tag(self, page: bytes, start: re.Match[bytes], out: list[bytes], last: bool) -> int:
        longest = start.start() + LONGEST_TAG
        rest = _REST_OF_TAG.match(page, start.end(), longest)
        if rest is None:
            if len(page) < longest and not last:
                return start.start()
            reached = min(len(page), longest)
            out.append(page[start.start() : reached])
            return reached
        name = start[2].lower()
        attributes = page[start.end() : rest.end()]
        out += start[0], self._with_links(attributes, _LINKS[name]) if name in _LINKS else attributes
        self._text_end = _ENDS.get(name)
        return rest.end()

    def _with_links(self, attributes: bytes, names: set[bytes]) -> bytes:
        def rewritten(attribute: re.Match[bytes]) -> bytes:
            if attribute[1].lower() not in names:
                return attribute[0]
            return self._attribute(attribute) or attribute[0]

        return _ATTRIBUTE.sub(rewritten, attributes)

    def _attribute(self, attribute: re.Match[bytes]) -> bytes | None:
        """Return the rewritten attribute, or None for an unchanged attribute."""
        value = attribute[2] or attribute[3] or attribute[4] or b""
        try:
            link = unescape(value.decode("utf-8", "surrogateescape"))
        except ValueError:  # invalid numeric character reference
            return None
        rewritten = self._links.rewritten(link)
        if rewritten == link:
            return None
        return b'%b="%b"' % (attribute[1], escape(rewritten).encode("utf-8", "surrogateescape"))


_PATH = re.compile(r"[^?#]*")


@dataclass(frozen=True, slots=True)
class Links:
    """Rewrites links to a proxied app. `prefix`: the client's path to the app; `hosts`: host names of the app."""

    prefix: str
    hosts: frozenset[str]

    def rewritten(self, link: str) -> str:
        """Return a link within the app as seen through the proxy. Other links are unchanged."""
        # Parse as a URL only links that may name a host: these are rare, and parsing is slow.
        if "//" in link or ":" in link:
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
        if not link.startswith("/"):
            return link
        path = _PATH.match(link)[0]  # type: ignore[index]
        return self._through_proxy(path) + link[len(path) :]

    def _through_proxy(self, path: str) -> str:
        if path.startswith(self.prefix):
            return path
        if "//" in path or "/." in path:
            return posixpath.normpath(f"{self.prefix}/{path}") + ("/" if path.endswith("/") else "")
        return self.prefix + path
