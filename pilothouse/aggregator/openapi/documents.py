"""The documents of /openapi: local documents merged with the documents of aggregated servers.

Documents are built on the first request after a change, from memory. Without remote APIServices, the local documents
are served as they are. The merging code is imported on demand.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property

import orjson

from pilothouse.aggregator.openapi.v2_aggregator import SpecAggregator
from pilothouse.aggregator.openapi.v3_aggregator import SpecProxier
from pilothouse.apiserver.openapi.service import Document, Lazy, MergedContainers, OpenAPIService, as_protobuf, v3_url
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt

log = logging.getLogger(__name__)


class AggregatedOpenAPI:
    """Implements OpenAPIDocuments."""

    def __init__(self, local: OpenAPIService, v2: SpecAggregator, v3: SpecProxier) -> None:
        self._local = local
        self._v2 = v2
        self._v3 = v3
        self._merged = AggregatedDocuments(DocumentSources(local.merged(), (), {}))

    def merged(self) -> AggregatedDocuments:
        sources = DocumentSources(self._local.merged(), self._v2.documents(), self._remote_v3())
        if self._merged.sources != sources:
            self._merged = AggregatedDocuments(sources)
        return self._merged

    async def v3(self, path: str) -> Document | None:
        return self._remote_v3().get(path) or await self._local.v3(path)

    def _remote_v3(self) -> dict[str, Document]:
        of_groups = self._v3.of_groups()
        local = self._local.entries() if of_groups else {}
        return {path: document for path, document in of_groups.items() if path not in local} | self._v3.own()


@dataclass(frozen=True, slots=True)
class DocumentSources:
    """Sources of the documents; equal sources mean unchanged documents. `v3`: path → remote document."""

    local: MergedContainers
    v2: tuple[Document, ...]
    v3: dict[str, Document]


class AggregatedDocuments:
    """The merged documents for one set of sources."""

    def __init__(self, sources: DocumentSources) -> None:
        self.sources = sources

    @cached_property
    def v2(self) -> Lazy[Document]:
        return Lazy(self._make_v2) if self.sources.v2 else self.sources.local.v2

    @cached_property
    def v2_protobuf(self) -> Lazy[Document]:
        return Lazy(self._make_v2_protobuf) if self.sources.v2 else self.sources.local.v2_protobuf

    @cached_property
    def v3_index(self) -> Lazy[Document]:
        return Lazy(self._make_v3_index) if self.sources.v3 else self.sources.local.v3_index

    async def _make_v2(self) -> Document:
        return await asyncio.to_thread(merge_documents, await self.sources.local.v2.get(), self.sources.v2)

    async def _make_v2_protobuf(self) -> Document:
        return await asyncio.to_thread(as_protobuf, await self.v2.get())

    async def _make_v3_index(self) -> Document:
        index = orjson.loads((await self.sources.local.v3_index.get()).plain())
        urls = {path: {"serverRelativeURL": v3_url(path, value)} for path, value in self.sources.v3.items()}
        return Document.of(orjson.dumps({"paths": dict(sorted((index["paths"] | urls).items()))}))


def merge_documents(local: Document, remote: tuple[Document, ...]) -> Document:
    """Merge the documents; documents that cannot be merged are skipped."""
    from pilothouse.aggregator.openapi.spec import Spec, merge

    merged = Spec.parse(local.plain())
    for document in remote:
        try:
            merged = merge(merged, Spec.parse(document.plain()))
        except Exception as error:
            log_failed_attempt(log, error, "an OpenAPI document of an aggregated server cannot be merged")
    return Document.of(merged.encode())
