"""Links in the pages of proxied apps."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable
from random import randbytes
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilothouse.kube.core.pods.connect.html_links import LinkRewriter, Links
from pilothouse.kube.core.pods.connect.pages import LARGEST_COMPRESSED, LARGEST_PAGE, rewritten_page

LINKS = Links("/api/v1/namespaces/d/pods/p/proxy", frozenset({"10.0.0.1:80", "localhost:8001"}))


@pytest.mark.parametrize(
    ("link", "seen"),
    [
        ("/", f"{LINKS.prefix}/"),
        ("/a/b?c=d#e", f"{LINKS.prefix}/a/b?c=d#e"),
        ("/a//b/../c/", f"{LINKS.prefix}/a/c/"),
        ("http://10.0.0.1:80/a", f"{LINKS.prefix}/a"),
        ("http://localhost:8001/a", f"{LINKS.prefix}/a"),
        ("//10.0.0.1:80/a", f"{LINKS.prefix}/a"),
        (f"{LINKS.prefix}/a", f"{LINKS.prefix}/a"),
        ("http://example.com/a", "http://example.com/a"),
        ("a/b", "a/b"),
        ("../a", "../a"),
        ("#top", "#top"),
        ("mailto:a@b", "mailto:a@b"),
        ("", ""),
        ("http://[", "http://["),
    ],
)
def test_links_within_the_app_lead_through_the_proxy(link: str, seen: str) -> None:
    assert LINKS.rewritten(link) == seen


PAGE = b"""<!doctype html><html><head><link rel=x href='/s.css'><title>/t</title></head>
<body><A class="c" HREF="/a?x=1&amp;y=2" title="/no">/text</A> <img src=/i.png alt="a>b">\xff
<script src="/s.js">var href = "/x";</script><p href="/p"><a href="http://example.com/">o</a></body></html>"""

SEEN = b"""<!doctype html><html><head><link rel=x href="P/s.css"><title>/t</title></head>
<body><A class="c" HREF="P/a?x=1&amp;y=2" title="/no">/text</A> <img src="P/i.png" alt="a>b">\xff
<script src="P/s.js">var href = "/x";</script><p href="/p"><a href="http://example.com/">o</a></body></html>"""


PIECES = [
    b"<a",
    b" href=",
    b"/x",
    b"'",
    b'"',
    b">",
    b"<!--",
    b"-->",
    b"<script",
    b"</script",
    b" ",
    b"=",
    b"<p",
    b"/",
    b"t",
]


def deflated(page: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(page) + squeeze.flush()


def inflated(page: bytes) -> bytes:
    return zlib.decompress(page, -15)


def same(page: bytes) -> bytes:
    return page


Recode: TypeAlias = Callable[[bytes], bytes]
ENCODINGS: dict[str, tuple[Recode, Recode]] = {
    "": (same, same),
    "gzip": (gzip.compress, gzip.decompress),
    "deflate": (deflated, inflated),
}


async def passed(page: bytes, encoding: str = "", size: int = 1 << 16, links: Links = LINKS) -> list[bytes]:
    """The page as its client gets it, when it comes in chunks of some size."""

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(page), size):
            yield page[at : at + size]

    return [part async for part in rewritten_page(chunks(), encoding, links)]


def through_the_proxy(page: bytes) -> bytes:
    return page.replace(b"P/", LINKS.prefix.encode() + b"/")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
async def test_only_the_links_of_a_page_change(encoding: str, size: int) -> None:
    compress, decompress = ENCODINGS[encoding]
    assert decompress(b"".join(await passed(compress(PAGE), encoding, size))) == through_the_proxy(SEEN)


async def test_a_page_in_another_encoding_passes_untouched() -> None:
    assert b"".join(await passed(PAGE, "br")) == PAGE
    assert b"".join(await passed(PAGE, "gzip")) == PAGE, "it is not gzip"
    assert b"".join(await passed(deflated(PAGE)[:-9], "deflate")) == deflated(PAGE)[:-9], "it is cut off"


def fed_bytewise(page: bytes) -> bytes:
    rewriter = LinkRewriter(LINKS)
    return b"".join(rewriter.feed(page[at : at + 1]) for at in range(len(page))) + rewriter.feed(b"", last=True)


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        (b'<a href="/x">', b'<a href="P/x">'),
        (b"<a href=/x/>", b'<a href="P/x/">'),
        (b"<a\nhref = '/x' >", b'<a\nhref="P/x" >'),
        (b"<a b'c href=/x d\"e>", b'<a b\'c href="P/x" d"e>'),
        (b'<p title="<a href=/x>">', b'<p title="<a href=/x>">'),
        (b"<!-- <a href=/x> --><a href=/y>", b'<!-- <a href=/x> --><a href="P/y">'),
        (b"<!--><a href=/y>", b'<!--><a href="P/y">'),
        (b"<script>'<a href=/x>'</Script><a href=/y>", b"<script>'<a href=/x>'</Script><a href=\"P/y\">"),
        (b"<abbr href=/x><ab", b"<abbr href=/x><ab"),
        (b"a < b <a href", b"a < b <a href"),
        (b"<a href='&#" + b"9" * 5000 + b";'>", b"<a href='&#" + b"9" * 5000 + b";'>"),
    ],
)
def test_tags_are_read_as_upstream_reads_them(page: bytes, seen: bytes) -> None:
    assert LinkRewriter(LINKS).feed(page, last=True) == through_the_proxy(seen)
    assert fed_bytewise(page) == through_the_proxy(seen)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.integers(1, 20))
@example(b"<a<a href=/x>", 2)
def test_rewriting_is_independent_of_chunk_boundaries(page: bytes, size: int) -> None:
    rewriter = LinkRewriter(LINKS)
    parts = [rewriter.feed(page[at : at + size]) for at in range(0, len(page), size)]
    whole = LinkRewriter(LINKS).feed(page, last=True)
    assert b"".join(parts) + rewriter.feed(b"", last=True) == whole
    assert whole.replace(LINKS.prefix.encode(), b"").replace(b'"', b"") == page.replace(b'"', b"")


@pytest.mark.parametrize(
    "piece", [b"<a ", b'<a "', b"<a x='", b'<a b="<a ', b"<!--", b"<script>", b"<", b"<a/", b"<a =", b"a="]
)
async def test_rewriting_of_other_text_is_fast(piece: bytes) -> None:
    page = piece * ((1 << 20) // len(piece))
    before = time.process_time()
    assert b"".join(await passed(page)) == page
    assert time.process_time() - before < 10


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_rewriting_does_not_block_the_event_loop(encoding: str) -> None:
    threads: set[str] = set()

    class Noting(Links):
        def rewritten(self, link: str) -> str:
            threads.add(threading.current_thread().name)
            return super().rewritten(link)

    compress, decompress = ENCODINGS[encoding]
    page = b"<a href=/x>" * 20_000
    seen = b"".join(await passed(compress(page), encoding, links=Noting(LINKS.prefix, LINKS.hosts)))
    assert decompress(seen) == through_the_proxy(b'<a href="P/x">') * 20_000
    assert threads
    assert all(name.startswith("offload") for name in threads)


async def test_decompression_bomb_passes_unchanged() -> None:
    bomb = gzip.compress(bytes(LARGEST_PAGE + 1))
    assert b"".join(await passed(bomb, "gzip")) == bomb
    large = gzip.compress(randbytes(LARGEST_COMPRESSED + 1))
    parts = await passed(large, "gzip")
    assert b"".join(parts) == large


async def test_decompression_bomb_of_many_members_passes_unchanged() -> None:
    bomb = gzip.compress(b"") * (LARGEST_COMPRESSED // 20) + gzip.compress(bytes(LARGEST_PAGE + 1))
    assert b"".join(await passed(bomb, "gzip")) == bomb


async def test_a_long_page_is_passed_on_in_steps() -> None:
    page = b"<a href=/x>text</a>" * 20_000
    assert max(map(len, await passed(page, size=1000))) < 1 << 18
    packed = await passed(gzip.compress(page), "gzip")
    assert gzip.decompress(b"".join(packed)) == through_the_proxy(page.replace(b"/x", b'"P/x"'))


async def test_plain_page_is_rewritten_up_to_the_limit() -> None:
    piece = b"<a href=/x>" + b"t" * 1013
    page = piece * (2 * LARGEST_PAGE // len(piece))
    seen = b"".join(await passed(page))
    assert LARGEST_PAGE // len(piece) <= seen.count(LINKS.prefix.encode()) <= (LARGEST_PAGE + (1 << 17)) // len(piece)
    assert seen.replace(b'"' + LINKS.prefix.encode() + b'/x"', b"/x") == page
