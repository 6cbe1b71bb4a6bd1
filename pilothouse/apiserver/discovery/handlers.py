"""The discovery endpoints. Documents are built once per change; aggregated documents carry an ETag."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property

import orjson
from prometheus_client import Counter

from pilothouse.apiserver.discovery.groups import (
    ServerAddresses,
    api_group,
    api_group_list,
    api_versions,
    group_discovery,
    group_discovery_list,
    resource_list,
)
from pilothouse.apiserver.discovery.manager import GroupDocuments, GroupManager
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.negotiation import matches, negotiate_output, parse_accept
from pilothouse.apiserver.endpoints.response import compressed, encoded
from pilothouse.apiserver.endpoints.routes import get_route
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, JSON, Serializers, media_types
from pilothouse.apiserver.http import Handler, Request, Response, source_ips
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.objects import Json

_KIND = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_PARAMETERS = "".join(f";{key}={value}" for key, value in _KIND.items())


class AggregatedDocument:
    """One aggregated discovery document. All its encodings have the same ETag."""

    def __init__(self, make: Callable[[], Json]) -> None:
        self._make = make
        self._forms: dict[str, bytes] = {}

    @cached_property
    def _json(self) -> bytes:
        return JSON.encode(self._make())

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha512(self._json).hexdigest().upper()}"'

    def body(self, serializer: Serializer) -> bytes:
        if serializer is JSON:
            return self._json
        if serializer.media_type not in self._forms:
            self._forms[serializer.media_type] = serializer.encode(orjson.loads(self._json))
        return self._forms[serializer.media_type]

    def answer(self, request: Request, serializer: Serializer) -> Response:
        headers = [(b"etag", self.etag.encode()), (b"vary", b"Accept"), (b"cache-control", b"public")]
        if request.header(b"if-none-match") == self.etag:
            return Response(304, b"", headers)
        media_type = f"{serializer.media_type}{_PARAMETERS}".encode()
        return compressed(request, Response(200, self.body(serializer), [(b"content-type", media_type), *headers]))


def with_aggregated(plain: Handler, aggregated: Callable[[], AggregatedDocument]) -> Handler:
    """Serve the aggregated form to clients that request it in Accept, otherwise the plain form."""

    async def discover(request: Request) -> Response:
        accept = request.header(b"accept")
        serializer = aggregated_form(accept)
        if serializer is not None:
            if "profile=nopeer" in accept:
                NO_PEER_REQUESTS.inc()
            return aggregated().answer(request, serializer)
        return await plain(request)

    return discover


@bounded_cache(entries=256, key_bytes=512)
def aggregated_form(accept: str) -> Serializer | None:
    """Return the serializer of the aggregated form; None if the client does not request it. The aggregated form
    takes precedence over plain forms, whatever their order."""
    clauses = [clause for clause in parse_accept(accept) if _KIND.items() <= dict(clause.params).items()]
    return next((form for clause in clauses for form in BUILT_IN if matches(clause, form)), None)


def discovery_route(handler: Handler, serializers: Serializers = BUILT_IN) -> Handler:
    spoken = tuple(media_types(serializers))
    return get_route(handler, spoken, consumes=spoken)


def document_handler(make: Callable[[], Json], serializers: Serializers = BUILT_IN) -> Handler:
    """Serve a document in the negotiated media type."""
    return discovery_route(any_method(make, serializers), serializers)


def any_method(make: Callable[[], Json], serializers: Serializers = BUILT_IN) -> Handler:
    """Like `document_handler`, for any method, as upstream's aggregator."""

    async def discover(request: Request) -> Response:
        return encoded(request, negotiate_output(request, serializers), make())

    return discover


def version_handler(version: APIVersion) -> Handler:
    document = resource_list(version)
    return document_handler(lambda: document, version.serializers)


def group_handler(group: APIGroup) -> Handler:
    document = api_group(group)
    return document_handler(lambda: document)


def legacy_root_handler(group: APIGroup, addresses: ServerAddresses) -> Handler:
    async def plain(request: Request) -> Response:
        client = next(iter(source_ips(request)), "")
        versions = api_versions(group, addresses.for_client(client))
        return encoded(request, negotiate_output(request, BUILT_IN), versions)

    document = AggregatedDocument(lambda: group_discovery_list([group_discovery(group)]))
    return discovery_route(with_aggregated(plain, lambda: document))


def root_handler(manager: GroupManager) -> Handler:
    """Serve /apis: the current groups."""
    plain = any_method(lambda: api_group_list(group.entry for group in manager.groups()))
    shown = AggregatedDocument(lambda: group_discovery_list([]))
    known: tuple[GroupDocuments, ...] | None = None

    def aggregated() -> AggregatedDocument:
        nonlocal shown, known
        groups = manager.groups()
        if groups != known:
            known, shown = groups, AggregatedDocument(lambda: group_discovery_list(g.discovery for g in groups))
        return shown

    return discovery_route(with_aggregated(plain, aggregated))


_SUBSYSTEM = "aggregator_discovery"


def _counter(name: str, what: str) -> Counter:
    return Counter(name, f"[ALPHA] {what}", subsystem=_SUBSYSTEM, registry=REGISTRY)


AGGREGATIONS = _counter("aggregation_count", "Counter of number of times discovery was aggregated")
NO_PEER_REQUESTS = _counter(
    "nopeer_requests", "Counter of number of times no-peer (non peer-aggregated) discovery was requested"
)
_counter("peer_aggregated_cache_hits", "Counter of number of times discovery was served from peer-aggregated cache")
_counter("peer_aggregated_cache_misses", "Counter of number of times discovery was aggregated across all API servers")
