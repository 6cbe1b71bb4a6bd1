"""Content negotiation: the media type of a request's body, and the media type and view of its response.

Accept: application/json;as=Table;v=v1;g=meta.k8s.io, application/json   → JSON, as a Table
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Protocol

from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.registry import Serializers, media_types, stream_media_types
from pilothouse.apiserver.http import Request
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotAcceptable, UnsupportedMediaType
from pilothouse.machinery.names import GroupVersionKind

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_CBOR_PATCH = "application/apply-patch+cbor"

APPLY_PATCHES = (APPLY_PATCH, APPLY_CBOR_PATCH)
ALL_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
SCHEMALESS_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
"""Patch types of kinds without merge rules for lists."""


_META_VERSIONS = ("v1", "v1beta1")
_PARTIAL = ("PartialObjectMetadata", "PartialObjectMetadataList")
_HUMAN_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_MOST_CLAUSES = 256
"""Maximum number of evaluated clauses of an Accept header. Bounds the cost of an error response."""
_LONGEST_INSERTION = 12
"""Go's sort uses insertion sort up to this length. The difference is visible, because the preference is not a strict
order."""


class EndpointRestrictions(Protocol):
    """Decides which media type parameters an endpoint supports. Hashable."""

    @property
    def server_version(self) -> str: ...

    def allows(self, serializer: Serializer, target: GroupVersionKind | None) -> bool:
        """Return whether the endpoint supports the media type, with the target if not None."""


class Views(Enum):
    """The alternative views that an endpoint supports."""

    NONE = ()
    """Responses without objects of a resource: errors, discovery."""
    METADATA = _PARTIAL
    TABLES = (*_PARTIAL, "Table")

    @property
    def server_version(self) -> str:
        return "" if self is Views.NONE else "v1"

    def allows(self, serializer: Serializer, target: GroupVersionKind | None) -> bool:
        if target is None:
            return self is Views.NONE or not serializer.only_views
        if target.group != "meta.k8s.io" or target.version not in _META_VERSIONS or target.kind not in self.value:
            return False
        return target.kind != "Table" or serializer.is_text


@dataclass(frozen=True, slots=True)
class Output:
    """The form of a response. `convert` is a kind other than the resource's own: Table or
    PartialObjectMetadata(List)."""

    serializer: Serializer
    convert: GroupVersionKind | None = None
    pretty: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One entry of an Accept header."""

    type: str
    subtype: str
    quality: float
    params: tuple[tuple[str, str], ...]


def negotiate_output(request: Request, serializers: Serializers, endpoint: EndpointRestrictions = Views.NONE) -> Output:
    """Return the form of the response. Raises NotAcceptable if the endpoint supports none of the acceptable media
    types."""
    output = _negotiate(request.header(b"accept"), serializers, endpoint)
    if output is None:
        raise _not_acceptable(media_types(serializers))
    if not output.pretty and _wants_pretty(request):
        return Output(output.serializer, output.convert, pretty=True)
    return output


def negotiate_stream(output: Output, serializers: Serializers) -> Serializer:
    """Return the serializer of a watch. Raises NotAcceptable if the media type cannot stream."""
    if not output.serializer.stream_media_type:
        raise _not_acceptable(stream_media_types(serializers))
    return output.serializer


def content_type_of(request: Request) -> str:
    """Return the media type of the body without parameters; "" if the client sent none."""
    return request.header(b"content-type").partition(";")[0].strip()


def negotiate_input(request: Request, serializers: Serializers) -> Serializer:
    """Return the serializer of the body; JSON without a content type. Raises UnsupportedMediaType."""
    media_type = content_type_of(request).lower()
    if not media_type:
        return serializers[0]
    for serializer in serializers:
        if serializer.media_type == media_type:
            return serializer
    raise unsupported_media_type(media_types(serializers))


def unsupported_media_type(supported: list[str]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
    )


def _not_acceptable(supported: list[str]) -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {', '.join(supported)}")


@bounded_cache(entries=1024, key_bytes=512, chosen=1)
def _negotiate(header: str, serializers: Serializers, endpoint: EndpointRestrictions) -> Output | None:
    if not header:
        return Output(serializers[0])
    for clause in parse_accept(header):
        for serializer in serializers:
            if matches(clause, serializer):
                output = _accept(clause, serializer, endpoint)
                if output is not None:
                    return output
    return None


def matches(clause: Clause, serializer: Serializer) -> bool:
    main, _, sub = serializer.media_type.partition("/")
    return (
        clause.type in (main, "*") and (clause.subtype in (sub, "*")) and (clause.type != "*" or clause.subtype == "*")
    )


def _accept(clause: Clause, serializer: Serializer, endpoint: EndpointRestrictions) -> Output | None:
    """Return the output that a clause requests; None if the endpoint does not support its parameters."""
    params = dict(clause.params)
    if params.get("stream") and (params["stream"] != "watch" or not serializer.stream_media_type):
        return None
    if params.get("sv") and params["sv"] != endpoint.server_version:
        return None
    convert = None
    if {"as", "g", "v"} & params.keys():
        convert = GroupVersionKind(params.get("g", ""), params.get("v", ""), params.get("as", ""))
    if not endpoint.allows(serializer, convert):
        return None
    return Output(serializer, convert, pretty=params.get("pretty") == "1")


def parse_accept(header: str) -> list[Clause]:
    """Return the first clauses in upstream's order of evaluation: each clause precedes less preferred clauses."""
    clauses = list(_clauses(header))
    if len(clauses) > _LONGEST_INSERTION:
        return sorted(clauses, key=lambda clause: -clause.quality)
    ordered: list[Clause] = []
    for clause in clauses:
        place = len(ordered)
        while place and _is_preferred(clause, ordered[place - 1]):
            place -= 1
        ordered.insert(place, clause)
    return ordered


def _is_preferred(clause: Clause, other: Clause) -> bool:
    """Not a strict order: a wildcard of higher quality goes both before and after a named type, as upstream."""
    return (
        clause.quality > other.quality
        or (clause.type != "*" and other.type == "*")
        or (clause.subtype != "*" and other.subtype == "*")
    )


def _clauses(header: str) -> Iterator[Clause]:
    for part in header.split(",", _MOST_CLAUSES)[:_MOST_CLAUSES]:
        media, *rest = (piece.strip() for piece in part.split(";"))
        main, _, sub = media.partition("/")
        if not sub:
            if main.strip() != "*":
                continue
            sub = "*"
        if "/" in sub:
            continue
        pairs = [(key.strip(), value.strip()) for key, _, value in (piece.partition("=") for piece in rest)]
        pairs = [(key, value) for key, value in pairs if value and "=" not in value]
        quality = next((_quality(value) for key, value in reversed(pairs) if key == "q"), 1.0)
        yield Clause(main.strip(), sub.strip(), quality, tuple(pair for pair in pairs if pair[0] != "q"))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _wants_pretty(request: Request) -> bool:
    if "pretty" in request.query_string and request.param("pretty"):
        return request.param("pretty") in _TRUE
    return request.header(b"user-agent").startswith(_HUMAN_AGENTS)
