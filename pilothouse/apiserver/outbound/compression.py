"""Decompression of gzip responses."""

from __future__ import annotations

import zlib
from dataclasses import replace

from pilothouse.apiserver.offload import offload
from pilothouse.apiserver.outbound.failures import BackendFailed
from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundResponse

_GZIP = 31


async def inflated(answer: OutboundResponse, *, limit: int) -> OutboundResponse:
    """Return the decompressed response. Raises AnswerTooLarge beyond `limit` bytes, and BackendFailed for truncated
    data. Decompression runs off the event loop, because a small body may expand enormously."""
    if answer.header(b"content-encoding").lower() != "gzip":
        return answer
    return replace(answer, body=await offload(_gunzipped, answer.body, limit))


def _gunzipped(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(_GZIP)
    try:
        whole = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise BackendFailed("gzip: invalid header") from None
    if len(whole) > limit:
        raise AnswerTooLarge(limit)
    if not inflater.eof:
        raise BackendFailed("unexpected EOF")
    return whole
