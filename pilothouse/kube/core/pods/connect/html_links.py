"""Links in HTML, rewritten as the page goes by.

Guarantees: time is linear in what is fed, whatever it is; no more than one tag is held back; what is no link in a tag
of HTML passes byte for byte. As upstream's tokenizer: quotes matter in the values of attributes only, and nothing is a
tag inside comments, scripts and the like.
"""

from __future__ import annotations

import posixpath
import re
from html import escape, unescape
from typing import Final

from yarl import URL

from pilothouse.machinery.dataclass import dataclass

LONGEST_TAG: Final = 64 * 1024
"""A tag that is longer passes as it is."""

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
"""The attributes of each tag that hold a link."""

_RAW: Final = (b"iframe", b"noembed", b"noframes", b"plaintext", b"script", b"style", b"textarea", b"title", b"xmp")
_ENDS: Final = {name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE) for name in _RAW}
"""Elements whose content is text, and how it ends."""
_COMMENT_END: Final = re.compile(rb"-->")
_LONGEST_END: Final = 16

_START: Final = re.compile(rb"<(?:(!--)|([a-zA-Z][^\s/>]{0,63}+)(?=[\s/>]))")
_PARTIAL_START: Final = re.compile(rb"<(?:!-?|[a-zA-Z][^\s/>]{0,63})?\Z")
"""What may yet become a start: of a name in which there is another bracket, the first one counts."""
_LONGEST_START: Final = 80
# All quantifiers are possessive, so that nothing is looked at twice.
_VALUE = rb"""\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|((?!["'])[^\s>]*+))"""
_ATTRIBUTE: Final = re.compile(rb"(?=[^\s/>])(=?[^\s/>=]*+)(?:%b|(?!\s*+=))" % _VALUE)
_REST_OF_TAG: Final = re.compile(rb"(?:[\s/]++|(?=[^\s/>])=?[^\s/>=]*+(?:%b|(?!\s*+=)))*+>" % _VALUE)


class LinkRewriter:
    """Fed a page in pieces, gives it back in pieces."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._held = b""  # of what was fed, what cannot be understood yet
        self._text_end: re.Pattern[bytes] | None = None  # while in a comment or a raw element, what ends it

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
        """To the end of a comment or a raw element, or as far as it certainly goes."""
        assert self._text_end is not None
        if found := self._text_end.search(page, at):
            self._text_end = None
            reached = found.end()
        else:
            reached = max(at, len(page) - _LONGEST_END)
        out.append(page[at:reached])
        return reached

    def _next(self, page: bytes, at: int, out: list[bytes], last: bool) -> int:
        """To behind the next tag; if it is not all here, to its beginning."""
        found = _START.search(page, at)
        if found is None:
            opened = _PARTIAL_START.search(page, max(at, len(page) - _LONGEST_START))
            reached = len(page) if opened is None or last else opened.start()
            out.append(page[at:reached])
            return reached
        out.append(page[at : found.start()])
        if found[1]:
            self._text_end = _COMMENT_END
            out.append(b"<!")  # the dashes that open a comment may close it
            return found.start() + 2
        return self._tag(page, found, out, last)

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
        """Return the rewritten attribute, None where there is nothing to change."""
        value = attribute[2] or attribute[3] or attribute[4] or b""
        try:
            link = unescape(value.decode("utf-8", "surrogateescape"))
        except ValueError:  # a character reference that is no number anybody can read
            return None
        seen = self._links.rewritten(link)
        if seen == link:
            return None
        return b'%b="%b"' % (attribute[1], escape(seen).encode("utf-8", "surrogateescape"))


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
