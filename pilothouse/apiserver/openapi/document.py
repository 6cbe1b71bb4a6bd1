"""A document in memory: compressed, because it has megabytes, is requested rarely, and mostly with gzip."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Generic, TypeVar

import orjson

from pilothouse.machinery.dataclass import dataclass

_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Document:
    """`etag` is the hash of the content without quotation marks; `made` is the time of its first occurrence."""

    compressed: bytes
    etag: str
    made: float = field(default_factory=time.time, compare=False)

    @classmethod
    def of(cls, plain: bytes, *, etag: str = "") -> Document:
        """Compress a document. Other encodings of a document share its ETag."""
        return cls(gzip.compress(plain, _LEVEL, mtime=0), etag or hashlib.sha512(plain).hexdigest().upper())

    def plain(self) -> bytes:
        return gzip.decompress(self.compressed)


def as_protobuf(document: Document) -> Document:
    """Return the OpenAPI v2 document in gnostic's protobuf encoding, with the same ETag."""
    from pilothouse.apiserver.openapi.gnostic.document import encode_document

    return Document.of(encode_document(orjson.loads(document.plain())), etag=document.etag)


T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that is computed once for all concurrent callers. A cancelled caller does not cancel the computation.

    If the computation fails, all waiting callers get the error, and the next caller retries.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._made: asyncio.Future[T] | None = None

    @classmethod
    def in_thread(cls, make: Callable[[], T]) -> Lazy[T]:
        return cls(lambda: asyncio.to_thread(make))

    async def get(self) -> T:
        if self._made is None or self._failed(self._made):
            self._made = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._made)

    @staticmethod
    def _failed(made: asyncio.Future[T]) -> bool:
        return made.done() and (made.cancelled() or made.exception() is not None)
