"""Content negotiation: which media type a request's body is in, and which one (and which view) it wants back.

Accept: application/json;as=Table;v=v1;g=meta.k8s.io, application/json   → JSON, as a Table
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.registry import Serializers, media_types, stream_media_types
from pilothouse.apiserver.http import Request
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotAcceptable, UnsupportedMediaType
from pilothouse.machinery.names import GroupVersionKind

_META_VERSIONS = ("v1", "v1beta1")
_PARTIAL = ("PartialObjectMetadata", "PartialObjectMetadataList")
_HUMAN_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))


@dataclass(frozen=True, slots=True)
class Output:
    """How to answer. `convert` asks for another kind than the resource's own: Table or PartialObjectMetadata(List)."""

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


def negotiate_output(request: Request, serializers: Serializers, *, transforms: bool = True) -> Output:
    """Raises NotAcceptable. `transforms` says whether the endpoint can answer as a Table or as metadata only."""
    output = _negotiate(request.header(b"accept"), serializers, transforms)
    if output is None:
        raise _not_acceptable(media_types(serializers))
    if not output.pretty and _wants_pretty(request):
        return Output(output.serializer, output.convert, pretty=True)
    return output


def negotiate_stream(output: Output, serializers: Serializers) -> Serializer:
    """Raises NotAcceptable where the chosen media type cannot stream."""
    if not output.serializer.stream_media_type:
        raise _not_acceptable(stream_media_types(serializers))
    return output.serializer


def negotiate_input(request: Request, serializers: Serializers) -> Serializer:
    """Raises UnsupportedMediaType. No content type means JSON."""
    media_type = request.header(b"content-type").partition(";")[0].strip().lower()
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
def _negotiate(header: str, serializers: Serializers, transforms: bool) -> Output | None:
    if not header:
        return Output(serializers[0])
    for clause in parse_accept(header):
        for serializer in serializers:
            if matches(clause, serializer):
                output = _accept(clause, serializer, transforms)
                if output is not None:
                    return output
    return None


def matches(clause: Clause, serializer: Serializer) -> bool:
    main, _, sub = serializer.media_type.partition("/")
    return (
        clause.type in (main, "*") and (clause.subtype in (sub, "*")) and (clause.type != "*" or clause.subtype == "*")
    )


def _accept(clause: Clause, serializer: Serializer, transforms: bool) -> Output | None:
    """The options in a clause's parameters; None where the endpoint cannot do what they ask for."""
    params = dict(clause.params)
    if params.get("stream", "watch") not in ("watch", "") or (
        params.get("stream") and not serializer.stream_media_type
    ):
        return None
    if params.get("sv", "v1") not in ("v1", ""):
        return None
    convert = None
    if {"as", "g", "v"} & params.keys():
        convert = GroupVersionKind(params.get("g", ""), params.get("v", ""), params.get("as", ""))
        if not transforms or not _can_convert(convert, serializer):
            return None
    return Output(serializer, convert, pretty=params.get("pretty") == "1")


def _can_convert(target: GroupVersionKind, serializer: Serializer) -> bool:
    if target.group != "meta.k8s.io" or target.version not in _META_VERSIONS:
        return False
    if target.kind == "Table":
        return serializer.media_type != "application/vnd.kubernetes.protobuf"
    return target.kind in _PARTIAL


def parse_accept(header: str) -> list[Clause]:
    """The clauses, best first; equal ones in the order given."""
    return sorted(_clauses(header), key=lambda clause: -clause.quality)


def _clauses(header: str) -> Iterator[Clause]:
    for part in header.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        main, slash, sub = media.partition("/")
        if not slash:
            if media != "*":
                continue
            main = sub = "*"
        pairs = [(key.strip(), value.strip()) for key, _, value in (piece.partition("=") for piece in rest)]
        quality = next((_quality(value) for key, value in pairs if key == "q"), 1.0)
        yield Clause(main.strip(), sub.strip(), quality, tuple(pair for pair in pairs if pair[0] != "q"))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _wants_pretty(request: Request) -> bool:
    if "pretty" in request.query_string and request.param("pretty"):
        return request.param("pretty") in _TRUE
    return request.header(b"user-agent").startswith(_HUMAN_AGENTS)
