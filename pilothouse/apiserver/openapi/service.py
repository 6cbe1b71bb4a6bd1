"""The documents of a server and of those that it delegates to, always of the newest routes.

service.update(container)    a group version came or changed
service.remove("apis/g/v1")  it went
await service.v3("api/v1")   made now, unless nothing has changed since it was last made
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from urllib.parse import quote

import orjson

from pilothouse.apiserver.openapi.document import Document, as_protobuf
from pilothouse.apiserver.openapi.lazy import Lazy
from pilothouse.apiserver.openapi.route import RouteContainer
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ContainerEntry:
    """One container with its v3 document. A container that changed is another entry."""

    container: RouteContainer
    v3: Lazy[Document]

    @classmethod
    def of(cls, container: RouteContainer) -> ContainerEntry:
        return cls(container, Lazy.in_thread(lambda: _make_v3(container)))


class OpenAPIService:
    """The documents of a server and its delegates; where both have a path, the server's own container counts."""

    def __init__(self, delegate: OpenAPIService | None = None) -> None:
        self._delegate = delegate
        self._entries: dict[str, ContainerEntry] = {}
        self._merged = MergedContainers(())

    def update(self, container: RouteContainer) -> None:
        """Adds the container, or puts it in the place of the one with the same path."""
        self._entries[container.path] = ContainerEntry.of(container)

    def remove(self, path: str) -> None:
        """One that is not there is no error."""
        self._entries.pop(path, None)

    def entries(self) -> dict[str, ContainerEntry]:
        below = self._delegate.entries() if self._delegate else {}
        return below | self._entries

    def merged(self) -> MergedContainers:
        """The documents that tell of everything."""
        entries = tuple(self.entries().values())
        if self._merged.entries != entries:
            self._merged = MergedContainers(entries)
        return self._merged

    async def v3(self, path: str) -> Document | None:
        """None where there is no such document."""
        entry = self.entries().get(path)
        return None if entry is None else await entry.v3.get()


class MergedContainers:
    """The documents of all containers, as long as the entries are these."""

    def __init__(self, entries: tuple[ContainerEntry, ...]) -> None:
        self.entries = entries

    @cached_property
    def v2(self) -> Lazy[Document]:
        containers = [entry.container for entry in self.entries]
        return Lazy.in_thread(lambda: _make_v2(containers))

    @cached_property
    def v2_protobuf(self) -> Lazy[Document]:
        return Lazy(self._v2_protobuf)

    @cached_property
    def v3_index(self) -> Lazy[Document]:
        """The paths of the v3 documents, with the hashes of what they say."""
        return Lazy(self._v3_index)

    async def _v2_protobuf(self) -> Document:
        document = await self.v2.get()
        return await asyncio.to_thread(as_protobuf, document)

    async def _v3_index(self) -> Document:
        documents = {entry.container.path: await entry.v3.get() for entry in self.entries}
        urls = {path: {"serverRelativeURL": v3_url(path, documents[path])} for path in sorted(documents)}
        return Document.of(orjson.dumps({"paths": urls}))


def v3_url(path: str, document: Document) -> str:
    """Return the URL of this very state of the document, which never changes."""
    return f"/openapi/v3/{quote(path)}?hash={document.etag}"


def _make_v3(container: RouteContainer) -> Document:
    from pilothouse.apiserver.openapi import v3

    return Document.of(v3.document(container))


def _make_v2(containers: list[RouteContainer]) -> Document:
    from pilothouse.apiserver.openapi import v2

    return Document.of(v2.document(containers))
