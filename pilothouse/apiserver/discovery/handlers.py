"""The discovery endpoints. Documents are made once per change; the aggregated ones carry an ETag."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property

import orjson

from pilothouse.apiserver.discovery.groups import api_group, api_group_list, api_versions, group_discovery_list
from pilothouse.apiserver.discovery.resources import resource_list
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.negotiation import negotiate_output, parse_accept
from pilothouse.apiserver.endpoints.response import encoded
from pilothouse.apiserver.endpoints.routes import method_not_allowed
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.objects import Json

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class AggregatedDocument:
    """One aggregated discovery document with its ETag."""

    def __init__(self, make: Callable[[], Json]) -> None:
        self._make = make

    @cached_property
    def body(self) -> bytes:
        return orjson.dumps(self._make(), option=orjson.OPT_APPEND_NEWLINE)

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha512(self.body).hexdigest().upper()}"'

    def answer(self, request: Request) -> Response:
        headers = [(b"etag", self.etag.encode()), (b"vary", b"Accept")]
        if request.header(b"if-none-match") == self.etag:
            return Response(304, b"", headers)
        return Response(200, self.body, [(b"content-type", _AGGREGATED.encode()), *headers])


def with_aggregated(plain: Handler, aggregated: AggregatedDocument) -> Handler:
    """Clients that know the aggregated form ask for it in their Accept header."""

    async def discover(request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed()
        if _wants_aggregated(request.header(b"accept")):
            return aggregated.answer(request)
        response = await plain(request)
        return response.with_header(b"vary", b"Accept")

    return discover


def _wants_aggregated(accept: str) -> bool:
    if "apidiscovery" not in accept:
        return False
    wanted = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
    return any(
        clause.subtype == "json" and wanted.items() <= dict(clause.params).items() for clause in parse_accept(accept)
    )


def document_handler(make: Callable[[], Json]) -> Handler:
    """A discovery document in whatever media type the client wants."""

    async def discover(request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed()
        return encoded(request, negotiate_output(request, BUILT_IN, transforms=False), make())

    return discover


def version_handler(version: APIVersion) -> Handler:
    document = resource_list(version)
    return document_handler(lambda: document)


def group_handler(group: APIGroup) -> Handler:
    document = api_group(group)
    return document_handler(lambda: document)


def legacy_root_handler(group: APIGroup, address: Callable[[], str]) -> Handler:
    plain = document_handler(lambda: api_versions(group, address()))
    return with_aggregated(plain, AggregatedDocument(lambda: group_discovery_list([group])))


def root_handler(groups: list[APIGroup]) -> Handler:
    """/apis for a server on its own; the aggregator has one that knows every server's groups."""
    plain = document_handler(lambda: api_group_list(groups))
    return with_aggregated(plain, AggregatedDocument(lambda: group_discovery_list(groups)))
