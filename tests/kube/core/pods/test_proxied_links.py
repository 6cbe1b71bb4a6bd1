"""Links in the pages of proxied apps."""

from __future__ import annotations

import gzip
import zlib

import pytest

from pilothouse.kube.core.pods.connect.links import Links

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


def deflated(page: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(page) + squeeze.flush()


def test_only_the_links_of_a_page_change() -> None:
    seen = SEEN.replace(b"P/", LINKS.prefix.encode() + b"/")
    assert LINKS.in_page(PAGE, "") == seen
    assert gzip.decompress(LINKS.in_page(gzip.compress(PAGE), "gzip")) == seen
    assert zlib.decompress(LINKS.in_page(deflated(PAGE), "deflate"), -15) == seen
    assert LINKS.in_page(PAGE, "br") == PAGE


@pytest.mark.parametrize("piece", [b"<a ", b'<a "', b"<a x='"])
def test_a_page_that_is_no_html_is_soon_done_with(piece: bytes) -> None:
    page = piece * 20_000
    assert LINKS.in_page(page, "") == page
