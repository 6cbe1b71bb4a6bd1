"""/openapi/v2 and /openapi/v3: negotiated, with an ETag, compressed for those who can take it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from email.utils import formatdate
from typing import Protocol

from pilothouse.apiserver.endpoints.negotiation import parse_accept
from pilothouse.apiserver.http import Handler, Headers, Request, Response
from pilothouse.apiserver.openapi.document import Document
from pilothouse.apiserver.openapi.lazy import Lazy
from pilothouse.apiserver.openapi.protobuf_forms import ProtobufForms
from pilothouse.apiserver.openapi.service import v3_url
from pilothouse.apiserver.server.mux import PathRecorderMux

JSON = "application/json"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_PROTOBUF_DEPRECATED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
V3_PROTOBUF_DEPRECATED = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"

_V2_TYPES = {JSON: JSON, V2_PROTOBUF_DEPRECATED: V2_PROTOBUF, V2_PROTOBUF: V2_PROTOBUF}
_V3_TYPES = {JSON: JSON, V3_PROTOBUF: V3_PROTOBUF, V3_PROTOBUF_DEPRECATED: V3_PROTOBUF}
_V3_PREFIX = "/openapi/v3/"
_YEAR = 365 * 86400


class MergedDocuments(Protocol):
    """The documents that tell of everything."""

    @property
    def v2(self) -> Lazy[Document]: ...

    @property
    def v2_protobuf(self) -> Lazy[Document]: ...

    @property
    def v3_index(self) -> Lazy[Document]: ...


class OpenAPIDocuments(Protocol):
    """The documents behind these endpoints: an OpenAPIService, or a merge of several servers' documents."""

    def merged(self) -> MergedDocuments: ...

    async def v3(self, path: str) -> Document | None:
        """None where there is no such document."""


def install_openapi(mux: PathRecorderMux, service: OpenAPIDocuments) -> None:
    mux.handle("/openapi/v2", _v2(service))
    mux.handle("/openapi/v3", _v3_index(service))
    mux.handle_prefix(_V3_PREFIX, _v3(service))


def _v2(service: OpenAPIDocuments) -> Handler:
    async def answer(request: Request) -> Response:
        media_type = _negotiate(request, _V2_TYPES)
        if media_type is None:
            return _empty(406)
        merged = service.merged()
        document = await (merged.v2 if media_type == JSON else merged.v2_protobuf).get()
        return await _serve(request, document, media_type)

    return answer


def _v3_index(service: OpenAPIDocuments) -> Handler:
    async def answer(request: Request) -> Response:
        return await _serve(request, await service.merged().v3_index.get(), JSON)

    return answer


def _v3(service: OpenAPIDocuments) -> Handler:
    protobuf = ProtobufForms()

    async def answer(request: Request) -> Response:
        path = request.path.removeprefix(_V3_PREFIX)
        document = await service.v3(path)
        if document is None:
            protobuf.forget(path)
            return Response(404)
        media_type = _negotiate(request, _V3_TYPES)
        if media_type is None:
            return _empty(406)
        wanted = request.param("hash")
        if wanted and wanted != document.etag:
            return _empty(301).with_header(b"location", v3_url(path, document).encode())
        form = document if media_type == JSON else await protobuf.of(path, document)
        response = await _serve(request, form, media_type)
        response.headers += _forever() if wanted else []
        return response

    return answer


def _negotiate(request: Request, types: dict[str, str]) -> str | None:
    for clause in parse_accept(request.header(b"accept") or "*/*"):
        for offered, answered in types.items():
            main, _, sub = offered.partition("/")
            if clause.type in (main, "*") and clause.subtype in (sub, "*"):
                return answered
    return None


async def _serve(request: Request, document: Document, media_type: str) -> Response:
    headers: Headers = [
        (b"content-type", media_type.encode()),
        (b"etag", f'"{document.etag}"'.encode()),
        (b"vary", b"Accept, Accept-Encoding"),
    ]
    if _is_known(request.header(b"if-none-match"), document.etag):
        return Response(304, b"", headers)
    if "gzip" in request.header(b"accept-encoding"):
        return Response(200, document.compressed, [*headers, (b"content-encoding", b"gzip")])
    return Response(200, await asyncio.to_thread(document.plain), headers)


def _is_known(if_none_match: str, etag: str) -> bool:
    known = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return any(tag in ("*", f'"{etag}"') for tag in known)


def _forever() -> Iterable[tuple[bytes, bytes]]:
    """Headers for a document asked for by its hash, which never changes."""
    expires = formatdate(time.time() + _YEAR, usegmt=True)
    return [(b"cache-control", b"public, immutable"), (b"expires", expires.encode())]


def _empty(status: int) -> Response:
    return Response(status, b"", [(b"vary", b"Accept")])
