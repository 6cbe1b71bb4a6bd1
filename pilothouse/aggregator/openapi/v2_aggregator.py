"""The specAggregator: the last good OpenAPI v2 document of each aggregated server, by priority."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pilothouse.aggregator.apiservice.apiservices import group_version_of
from pilothouse.aggregator.download import TIMEOUT, Download, DownloadFailed
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.openapi.service import Document
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

if TYPE_CHECKING:
    from pilothouse.aggregator.openapi.spec import Spec


USER = User("system:aggregator")

R = TypeVar("R", bound="Ranked")
_PATH = "/openapi/v2"


@dataclass(frozen=True, slots=True, eq=False)
class RemoteService:
    """An APIService from the view of the OpenAPI controllers."""

    name: str
    group_version: GroupVersion
    group_priority: int
    version_priority: int
    handler: Handler

    @classmethod
    def of(cls, handler: Handler, api_service: Json) -> RemoteService:
        spec = api_service["spec"]
        return cls(
            name_of(api_service),
            group_version_of(api_service),
            group_priority=spec.get("groupPriorityMinimum") or 0,
            version_priority=spec.get("versionPriority") or 0,
            handler=handler,
        )


@dataclass(slots=True, eq=False)
class Ranked:
    """A value with the priority of its APIService."""

    service: RemoteService


def by_priority(values: Iterable[R]) -> list[R]:
    """Sort by group priority, then version priority, regardless of the input order."""
    values = list(values)
    groups: dict[str, int] = {}
    for value in values:
        group = value.service.group_version.group
        groups[group] = max(groups.get(group, 0), value.service.group_priority)

    def order(value: R) -> tuple[int, str, int, str]:
        service, group = value.service, value.service.group_version.group
        return -groups[group], group, -service.version_priority, service.name

    return sorted(values, key=order)


@dataclass(frozen=True, slots=True, eq=False)
class DownloadedSpec:
    """`document`: the paths of one group version. `etag`: the server's, or a digest of the body."""

    document: Document
    etag: str
    is_servers_etag: bool


async def download_v2(
    service: RemoteService, known: DownloadedSpec | None, *, timeout: float = TIMEOUT
) -> DownloadedSpec:
    """Return the known document if unchanged, else the new one. Raises DownloadFailed, also for unmergeable
    documents."""
    etag = known.etag if known and known.is_servers_etag else ""
    answer = await Download(_PATH, USER, etag=etag, timeout=timeout).get(service.handler)
    if answer.status == 304 and known:
        return known
    if answer.status != 200:
        raise DownloadFailed(f"{_PATH}: status {answer.status}")
    etag = answer.etag or hashlib.sha512(answer.body).hexdigest()
    if known and known.etag == etag:
        return known
    document = await asyncio.to_thread(_relevant, answer.body, service.group_version)
    return DownloadedSpec(document, etag, bool(answer.etag))


def _relevant(body: bytes, group_version: GroupVersion) -> Document:
    from pilothouse.aggregator.openapi.spec import MalformedSpec, Spec

    prefix = f"/apis/{group_version}/"
    try:
        spec = Spec.parse(body).filtered(lambda path: path.startswith(prefix))
    except MalformedSpec as error:
        raise DownloadFailed(f"{_PATH}: {error}") from None
    _refuse_what_cannot_be_encoded(spec)
    return Document.of(spec.encode())


def _refuse_what_cannot_be_encoded(spec: Spec) -> None:
    """Reject documents without a protobuf form: the merged document must be encodable for all clients."""
    from pilothouse.apiserver.openapi.gnostic import encode_document

    try:
        encode_document(replace(spec, head={}).document())
    except Exception as error:  # malformed documents raise arbitrary errors
        raise DownloadFailed(f"{_PATH} cannot be encoded: {error!r}") from None


@dataclass(slots=True, eq=False)
class RemoteSpec(Ranked):
    downloaded: DownloadedSpec | None = None


class SpecAggregator:
    _specs: dict[str, RemoteSpec]  # APIService name → spec

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._specs = {}

    def put(self, service: RemoteService) -> None:
        """Add or replace the service with this name."""
        known = self._specs.get(service.name)
        self._specs[service.name] = RemoteSpec(service, known.downloaded if known else None)

    def remove(self, name: str) -> None:
        """Remove the document of an APIService; a no-op if absent."""
        self._specs.pop(name, None)

    async def update(self, name: str) -> bool:
        """Download the document if changed. Returns False for an unknown name. Raises DownloadFailed."""
        spec = self._specs.get(name)
        if spec is None:
            return False
        spec.downloaded = await download_v2(spec.service, spec.downloaded, timeout=self._timeout)
        return True

    def documents(self) -> tuple[Document, ...]:
        """Return the documents by priority. Unchanged documents keep their identity."""
        specs = by_priority(self._specs.values())
        return tuple(spec.downloaded.document for spec in specs if spec.downloaded)
