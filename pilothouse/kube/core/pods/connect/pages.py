"""HTML pages of proxied apps, with links rewritten on the fly.

Guarantees: memory is bounded by one chunk besides the compressed page; the event loop is never blocked; a compressed
page above the size limit, compressed or inflated, passes unchanged.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from io import BytesIO
from typing import Final

from pilothouse.apiserver.http import Stream
from pilothouse.apiserver.offload import offload, offload_by_size
from pilothouse.apiserver.streams import close_stream
from pilothouse.kube.core.pods.connect.html_links import LinkRewriter, Links

LARGEST_COMPRESSED: Final = 1024 * 1024
LARGEST_PAGE: Final = 4 * 1024 * 1024
"""Bytes. The rest of a longer uncompressed page passes unchanged."""
_STEP: Final = 64 * 1024
_RAW_DEFLATE: Final = -15
_GZIP: Final = 31


def rewritten_page(page: Stream, encoding: str, links: Links) -> Stream:
    """Return the page with rewritten links, or the unchanged page for an unknown encoding."""
    if encoding in _INFLATE:
        return _compressed_page(page, encoding, links)
    return page if encoding else _plain_page(page, links)


async def _plain_page(page: Stream, links: Links) -> AsyncIterator[bytes]:
    rewriter, size = LinkRewriter(links), 0
    try:
        async for step in _steps(page):
            last = size + len(step) > LARGEST_PAGE >= size
            yield step if size > LARGEST_PAGE else await offload_by_size(len(step), rewriter.feed, step, last=last)
            size += len(step)
        yield rewriter.feed(b"", last=True)
    finally:
        await close_stream(page)


async def _steps(page: Stream) -> AsyncIterator[bytes]:
    """Yield the page in larger chunks: incomplete text is scanned again with each chunk."""
    step = bytearray()
    async for chunk in page:
        step += chunk
        if len(step) >= _STEP:
            yield bytes(step)
            step.clear()
    if step:
        yield bytes(step)


async def _compressed_page(page: Stream, encoding: str, links: Links) -> AsyncIterator[bytes]:
    try:
        held = bytearray()
        async for chunk in page:
            held += chunk
            if len(held) > LARGEST_COMPRESSED:
                yield bytes(held)
                break
        else:
            data = bytes(held)
            if not await offload(_fits, data, encoding):
                yield data
                return
            rewriting = _rewriting(data, encoding, links)
            while (part := await offload(next, rewriting, None)) is not None:
                yield part
            return
        held.clear()
        async for chunk in page:
            yield chunk
    finally:
        await close_stream(page)


def _fits(data: bytes, encoding: str) -> bool:
    """Report whether the data has the encoding and an acceptable inflated size. The inflated data is discarded."""
    size = 0
    try:
        for piece in _INFLATE[encoding](data):
            size += len(piece)
            if size > LARGEST_PAGE:
                return False
    except (OSError, EOFError, zlib.error):
        return False
    return True


def _rewriting(data: bytes, encoding: str, links: Links) -> Iterator[bytes]:
    rewriter, compressor = LinkRewriter(links), _DEFLATE[encoding]()
    for piece in _INFLATE[encoding](data):
        yield compressor.compress(rewriter.feed(piece))
    yield compressor.compress(rewriter.feed(b"", last=True)) + compressor.flush()


def _gunzipped(data: bytes) -> Iterator[bytes]:
    """Raises OSError, EOFError, zlib.error."""
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        while piece := file.read(_STEP):
            yield piece


def _inflated(data: bytes) -> Iterator[bytes]:
    """Raises EOFError, zlib.error."""
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    while piece := inflater.decompress(data, _STEP):
        yield piece
        data = inflater.unconsumed_tail
    if not inflater.eof:
        raise EOFError


_INFLATE: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {"gzip": _gunzipped, "deflate": _inflated}
_DEFLATE: Final = {
    "gzip": lambda: zlib.compressobj(wbits=_GZIP),
    "deflate": lambda: zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=_RAW_DEFLATE),
}
