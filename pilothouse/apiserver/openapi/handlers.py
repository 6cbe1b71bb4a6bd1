"""/openapi/v2 and /openapi/v3: negotiated, with an ETag, compressed if the client accepts that."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from typing import Protocol

import orjson

from pilothouse.apiserver.endpoints.negotiation import parse_accept
from pilothouse.apiserver.http import Handler, Headers, Request, Response
from pilothouse.apiserver.openapi.service import Document, Lazy, v3_url
from pilothouse.apiserver.serve_content import Content, accepts_gzip, serve_content
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
    """The documents about all paths."""

    @property
    def v2(self) -> Lazy[Document]: ...

    @property
    def v2_protobuf(self) -> Lazy[Document]: ...

    @property
    def v3_index(self) -> Lazy[Document]: ...


class OpenAPIDocuments(Protocol):
    """The documents of these endpoints: an OpenAPIService, or merged documents of several servers."""

    def merged(self) -> MergedDocuments: ...

    async def v3(self, path: str) -> Document | None:
        """Return the document; None for an unknown path."""


def install_openapi(mux: PathRecorderMux, service: OpenAPIDocuments) -> None:
    mux.handle("/openapi/v2", _v2(service))

    async def answer(request: Request) -> Response:
        """Respond with the index. As upstream, it is built for each request and not negotiated."""
        document = await service.merged().v3_index.get()
        body = await asyncio.to_thread(document.plain)
        return serve_content(request, Content(body, "text/plain; charset=utf-8", "", time.time(), []))

    mux.handle("/openapi/v3", answer)
    mux.handle_prefix(_V3_PREFIX, _v3(service))


def _v2(service: OpenAPIDocuments) -> Handler:
    async def answer(request: Request) -> Response:
        media_type = _negotiate(request, _V2_TYPES)
        if media_type is None:
            return Response(406, b"", [(b"vary", b"Accept-Encoding"), (b"vary", b"Accept")])
        merged = service.merged()
        document = await (merged.v2 if media_type == JSON else merged.v2_protobuf).get()
        content = await _content(document, media_type, b"Accept-Encoding", b"Accept")
        response = serve_content(request, content)
        if response.status == 200 and request.method != "HEAD" and accepts_gzip(request.header(b"accept-encoding")):
            return Response(200, document.compressed, [*response.headers, (b"content-encoding", b"gzip")])
        return response

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
            return Response(406, b"", [(b"vary", b"Accept")])
        wanted = request.param("hash")
        if wanted and wanted != document.etag:
            return Response(
                301,
                b"",
                [
                    (b"vary", b"Accept"),
                    (b"content-type", media_type.encode()),
                    (b"etag", f'"{document.etag}"'.encode()),
                    (b"location", v3_url(path, document).encode()),
                ],
            )
        form = document if media_type == JSON else await protobuf.of(path, document)
        response = serve_content(request, await _content(form, media_type, b"Accept"))
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


async def _content(document: Document, media_type: str, *vary: bytes) -> Content:
    body = await asyncio.to_thread(document.plain)
    return Content(body, media_type, document.etag, document.made, [(b"vary", each) for each in vary])


def _forever() -> Headers:
    """Return cache headers of an immutable document, which is requested by its hash."""
    expires = formatdate(time.time() + _YEAR).replace("-0000", "UTC")
    return [(b"cache-control", b"public, immutable"), (b"expires", expires.encode())]


class ProtobufForms:
    """The v3 documents in protobuf, made from the JSON on request and cached until the JSON changes."""

    _forms: dict[str, tuple[str, Lazy[Document]]]  # path -> (ETag of the JSON, protobuf form), for existing documents

    def __init__(self) -> None:
        self._forms = {}

    async def of(self, path: str, document: Document) -> Document:
        """Return the protobuf form of the document at the path, with the ETag of the document."""
        etag, form = self._forms.get(path, ("", None))
        if form is None or etag != document.etag:
            form = Lazy.in_thread(lambda: _encoded(document))
            self._forms[path] = (document.etag, form)
        return await form.get()

    def forget(self, path: str) -> None:
        """Drop the form of a removed document."""
        self._forms.pop(path, None)


def _encoded(document: Document) -> Document:
    from pilothouse.apiserver.openapi.gnostic import encode_v3_document

    return Document.of(encode_v3_document(orjson.loads(document.plain())), etag=document.etag)
