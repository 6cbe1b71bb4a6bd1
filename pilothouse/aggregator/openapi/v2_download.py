"""Downloads the OpenAPI v2 document of a server, and keeps of it what an APIService stands for."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.aggregator.download import TIMEOUT, Download, DownloadFailed
from pilothouse.aggregator.openapi.remote import USER, RemoteService
from pilothouse.apiserver.openapi.document import Document
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion

if TYPE_CHECKING:
    from pilothouse.aggregator.openapi.spec import Spec

_PATH = "/openapi/v2"


@dataclass(frozen=True, slots=True, eq=False)
class DownloadedSpec:
    """`document` has the paths of one group version. `etag` is the server's, or one made here for what it sent."""

    document: Document
    etag: str
    is_servers_etag: bool


async def download_v2(
    service: RemoteService, known: DownloadedSpec | None, *, timeout: float = TIMEOUT
) -> DownloadedSpec:
    """The one that is known if it has not changed. Raises DownloadFailed, also for what cannot be merged."""
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
    """A document is merged with all others and sent as protobuf, too: one that does not fit must not spoil theirs."""
    from pilothouse.apiserver.openapi.gnostic.document import encode_document

    try:
        encode_document(replace(spec, head={}).document())
    except Exception as error:  # whatever is wrong with a document shows as some error or other
        raise DownloadFailed(f"{_PATH} cannot be encoded: {error!r}") from None
