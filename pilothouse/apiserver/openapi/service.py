"""The documents of a server and its delegates, always for the current routes.

service.update(container)    a group version was added or changed
service.remove("apis/g/v1")  a group version was removed
await service.v3("api/v1")   built now unless unchanged since the last build

Documents are compressed in memory: they have megabytes, are requested rarely, and mostly with gzip.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote

import orjson

from pilothouse.apiserver.openapi.route import RouteContainer
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.openapi.v2 import DocumentPart

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
    from pilothouse.apiserver.openapi.gnostic import encode_document

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


@dataclass(frozen=True, eq=False)
class ContainerEntry:
    """One container with its v3 document and its part of the v2 document. A changed container is a new entry."""

    container: RouteContainer
    v3: Lazy[Document]

    @classmethod
    def of(cls, container: RouteContainer) -> ContainerEntry:
        return cls(container, Lazy.in_thread(lambda: _make_v3(container)))

    @cached_property
    def v2_part(self) -> DocumentPart:
        """OpenAPI v2 of this container. Cached: a change of one group version does not rebuild the others."""
        from pilothouse.apiserver.openapi import v2

        return v2.DocumentPart.of(self.container)


class OpenAPIService:
    """The documents of a server and its delegates. For a path of both, the server's container takes precedence."""

    def __init__(self, delegate: OpenAPIService | None = None) -> None:
        self._delegate = delegate
        self._entries: dict[str, ContainerEntry] = {}
        self._merged = MergedContainers(())

    def update(self, container: RouteContainer) -> None:
        """Add or replace the container."""
        self._entries[container.path] = ContainerEntry.of(container)

    def remove(self, path: str) -> None:
        """Remove the container; idempotent."""
        self._entries.pop(path, None)

    def entries(self) -> dict[str, ContainerEntry]:
        below = self._delegate.entries() if self._delegate else {}
        return below | self._entries

    def merged(self) -> MergedContainers:
        """The documents about all paths."""
        entries = tuple(self.entries().values())
        if self._merged.entries != entries:
            self._merged = MergedContainers(entries)
        return self._merged

    async def v3(self, path: str) -> Document | None:
        """Return the document; None for an unknown path."""
        entry = self.entries().get(path)
        return None if entry is None else await entry.v3.get()


class MergedContainers:
    """The merged documents of a fixed set of entries."""

    def __init__(self, entries: tuple[ContainerEntry, ...]) -> None:
        self.entries = entries

    @cached_property
    def v2(self) -> Lazy[Document]:
        return Lazy.in_thread(lambda: _make_v2(self.entries))

    @cached_property
    def v2_protobuf(self) -> Lazy[Document]:
        return Lazy(self._v2_protobuf)

    @cached_property
    def v3_index(self) -> Lazy[Document]:
        """The index: v3 documents with their hashes."""
        return Lazy(self._v3_index)

    async def _v2_protobuf(self) -> Document:
        document = await self.v2.get()
        return await asyncio.to_thread(as_protobuf, document)

    async def _v3_index(self) -> Document:
        documents = {entry.container.path: await entry.v3.get() for entry in self.entries}
        urls = {path: {"serverRelativeURL": v3_url(path, documents[path])} for path in sorted(documents)}
        return Document.of(orjson.dumps({"paths": urls}))


def v3_url(path: str, document: Document) -> str:
    """Return the URL of this version of the document, which is immutable."""
    return f"/openapi/v3/{quote(path)}?hash={document.etag}"


def _make_v3(container: RouteContainer) -> Document:
    from pilothouse.apiserver.openapi import v3

    return Document.of(v3.document(container))


def _make_v2(entries: tuple[ContainerEntry, ...]) -> Document:
    from pilothouse.apiserver.openapi import v2

    return Document.of(v2.joined(entry.v2_part for entry in entries))
