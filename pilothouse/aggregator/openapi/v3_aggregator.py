"""The specProxier: the OpenAPI v3 documents of aggregated servers, downloaded when the server's index changes.

An APIService contributes the document of its group version, which replaces a local document of the same path as
requests do, and the document of its group if no local server has one. The v2 document of a server without v3 is
converted.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import field
from typing import Any

import orjson

from pilothouse.aggregator.download import TIMEOUT, Download, DownloadAnswer, DownloadFailed
from pilothouse.aggregator.openapi import v2_aggregator
from pilothouse.apiserver.openapi.service import Document
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_ROOT = "/openapi/v3"
_PLAIN_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True, slots=True, eq=False)
class DownloadedDocument:
    document: Document
    url: str
    """URL from the server's index; a new URL means a changed document."""


@dataclass(slots=True, eq=False)
class RemoteDocuments(v2_aggregator.Ranked):
    by_path: dict[str, DownloadedDocument] = field(default_factory=dict)
    v2: v2_aggregator.DownloadedSpec | None = None


class SpecProxier:
    _services: dict[str, RemoteDocuments]  # by APIService name

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._services = {}

    def put(self, service: v2_aggregator.RemoteService) -> None:
        """Add or replace the service with this name."""
        known = self._services.get(service.name)
        documents = RemoteDocuments(service, known.by_path, known.v2) if known else RemoteDocuments(service)
        self._services[service.name] = documents

    def remove(self, name: str) -> None:
        """Remove the documents of an APIService; a no-op if absent."""
        self._services.pop(name, None)

    async def update(self, name: str) -> bool:
        """Download changed documents. Returns False for an unknown name. Raises DownloadFailed."""
        known = self._services.get(name)
        if known is None:
            return False
        answer = await self._get(known, _ROOT)
        if answer.status == 404:
            await self._convert(known)
        else:
            index = await _parsed(answer)
            documents: dict[str, DownloadedDocument] = {}
            for path in (_own_path(known.service), _group_path(known.service)):
                paths = index.get("paths")
                entry = paths.get(path) if isinstance(paths, dict) else None
                url = entry.get("serverRelativeURL") if isinstance(entry, dict) else None
                url = url if isinstance(url, str) else None
                if url is None:
                    continue
                existing = known.by_path.get(path)
                unchanged = existing is not None and existing.url == url and "?" in url
                documents[path] = existing if existing and unchanged else await self._document(known, path, url)
            known.by_path = documents
        return True

    def own(self) -> dict[str, Document]:
        """Return the documents of the APIServices' group versions, by path."""
        return {
            path: known.by_path[path].document
            for known in v2_aggregator.by_priority(self._services.values())
            if (path := _own_path(known.service)) in known.by_path
        }

    def of_groups(self) -> dict[str, Document]:
        """Return the group documents by path; the version with the highest priority wins."""
        documents: dict[str, Document] = {}
        for known in v2_aggregator.by_priority(self._services.values()):
            path = _group_path(known.service)
            if path in known.by_path:
                documents.setdefault(path, known.by_path[path].document)
        return documents

    async def _document(self, known: RemoteDocuments, path: str, url: str) -> DownloadedDocument:
        answer = await self._get(known, f"{_ROOT}/{path}")
        await _parsed(answer)
        tag = answer.etag.removeprefix("W/").strip('"')
        etag = tag if _PLAIN_TAG.fullmatch(tag) else ""
        existing = known.by_path.get(path)
        if existing and existing.document.etag == etag:
            return DownloadedDocument(existing.document, url)
        return DownloadedDocument(await asyncio.to_thread(Document.of, answer.body, etag=etag), url)

    async def _convert(self, known: RemoteDocuments) -> None:
        downloaded = await v2_aggregator.download_v2(known.service, known.v2, timeout=self._timeout)
        if downloaded is known.v2:
            return
        try:
            document = await asyncio.to_thread(_converted, downloaded.document)
        except Exception as error:  # malformed documents raise arbitrary errors
            raise DownloadFailed(f"/openapi/v2 cannot be converted: {error!r}") from None
        known.v2, known.by_path = downloaded, {_own_path(known.service): DownloadedDocument(document, "")}

    async def _get(self, known: RemoteDocuments, path: str) -> DownloadAnswer:
        return await Download(path, v2_aggregator.USER, timeout=self._timeout).get(known.service.handler)


def _own_path(service: v2_aggregator.RemoteService) -> str:
    return f"apis/{service.group_version}"


def _group_path(service: v2_aggregator.RemoteService) -> str:
    return f"apis/{service.group_version.group}"


async def _parsed(answer: DownloadAnswer) -> Json:
    """Parse the body. Raises DownloadFailed unless the body is a JSON object, because clients receive it unchanged."""
    if answer.status != 200:
        raise DownloadFailed(f"{_ROOT}: status {answer.status}")
    try:
        document: Any = await asyncio.to_thread(orjson.loads, answer.body)
    except orjson.JSONDecodeError as error:
        raise DownloadFailed(f"{_ROOT}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DownloadFailed(f"{_ROOT}: not a JSON object")
    return document


def _converted(document: Document) -> Document:
    from pilothouse.aggregator.openapi.conversion import as_v3
    from pilothouse.aggregator.openapi.spec import Spec

    return Document.of(as_v3(Spec.parse(document.plain())))
