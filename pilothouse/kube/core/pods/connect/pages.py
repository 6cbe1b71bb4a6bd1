"""HTML pages of proxied apps, whose links are rewritten as they are passed on.

Guarantees: no more than about a step of the page is held besides its compressed form; the event loop is not held up,
whatever the page is; a page that is compressed and too large, before or after it is inflated, passes untouched.
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
"""Bytes. Of a page that is not compressed this much is rewritten, and the rest passes."""
_STEP: Final = 64 * 1024
_RAW_DEFLATE: Final = -15
_GZIP: Final = 31


def rewritten_page(page: Stream, encoding: str, links: Links) -> Stream:
    """The page with its links rewritten, or untouched if it is in an encoding that nobody knows."""
    if encoding in _INFLATE:
        return _compressed_page(page, encoding, links)
    return page if encoding else _plain_page(page, links)


async def _plain_page(page: Stream, links: Links) -> AsyncIterator[bytes]:
    rewriter, done = LinkRewriter(links), 0
    try:
        async for step in _steps(page):
            last = done + len(step) > LARGEST_PAGE >= done
            yield step if done > LARGEST_PAGE else await offload_by_size(len(step), rewriter.feed, step, last=last)
            done += len(step)
        yield rewriter.feed(b"", last=True)
    finally:
        await close_stream(page)


async def _steps(page: Stream) -> AsyncIterator[bytes]:
    """Yield the page in larger pieces, since text that is not understood yet is looked at again with each piece."""
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
    """Return whether the data is in the encoding and not too large when unpacked. Nothing of it is kept."""
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
