"""The discovery endpoints. Documents are made once per change; the aggregated ones carry an ETag."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property

import orjson

from pilothouse.apiserver.discovery.groups import (
    api_group,
    api_group_list,
    api_versions,
    group_discovery,
    group_discovery_list,
)
from pilothouse.apiserver.discovery.manager import GroupDocuments, GroupManager
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


def with_aggregated(plain: Handler, aggregated: Callable[[], AggregatedDocument]) -> Handler:
    """Clients that know the aggregated form ask for it in their Accept header."""

    async def discover(request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed()
        if _wants_aggregated(request.header(b"accept")):
            return aggregated().answer(request)
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
    document = AggregatedDocument(lambda: group_discovery_list([group_discovery(group)]))
    return with_aggregated(plain, lambda: document)


def root_handler(manager: GroupManager) -> Handler:
    """/apis: the groups that there are at the moment of the request."""
    return groups_handler(manager, document_handler(lambda: api_group_list(group.entry for group in manager.groups())))


def groups_handler(manager: GroupManager, plain: Handler) -> Handler:
    """/apis, where something else knows the list of groups and their order."""
    shown = AggregatedDocument(lambda: group_discovery_list([]))
    known: tuple[GroupDocuments, ...] | None = None

    def aggregated() -> AggregatedDocument:
        nonlocal shown, known
        groups = manager.groups()
        if groups != known:
            known, shown = groups, AggregatedDocument(lambda: group_discovery_list(g.discovery for g in groups))
        return shown

    return with_aggregated(plain, aggregated)
