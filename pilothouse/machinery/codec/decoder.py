"""Decoding of request bodies into objects of built-in kinds, with the error messages of upstream's decoders.

    body = decode_object(data, codec=Codec.JSON, default=DEPLOYMENT, scheme=KUBE, strict=True)
    body.obj, body.gvk, body.strict_errors

The kind and version in the body take precedence; `default` fills in missing ones. The decoded object has both.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from pilothouse.machinery.codec.body_errors import BodyError, refusal
from pilothouse.machinery.codec.json import JsonError, parse, parse_document
from pilothouse.machinery.codec.json_syntax import interpretation_error
from pilothouse.machinery.codec.scheme import (
    NO_TYPE,
    Scheme,
    cbor_type_error,
    interpret,
    interpret_cbor,
    unknown_conversion,
    with_defaults,
)
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.object_type import Decoded, DecodeError, ObjectType
from pilothouse.machinery.schema.raw_json import keep_raw, sort_raw
from pilothouse.machinery.schema.scalars import Mismatch


class Codec(Enum):
    JSON = "application/json"
    YAML = "application/yaml"
    CBOR = "application/cbor"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """strict_errors: unknown and duplicate fields, in upstream's order; empty without `strict`."""

    obj: Json
    gvk: GroupVersionKind
    strict_errors: tuple[str, ...] = ()


def decode_object(
    data: bytes, *, codec: Codec, default: GroupVersionKind, scheme: Scheme, strict: bool = True
) -> DecodedBody:
    """Decode like `decode_body`. Raises BadRequest with the message of creates and updates."""
    try:
        return decode_body(data, codec=codec, default=default, scheme=scheme, strict=strict)
    except BodyError as error:
        raise refusal(error, default, data) from None


def decode_body(
    data: bytes, *, codec: Codec, default: GroupVersionKind, scheme: Scheme, strict: bool = True
) -> DecodedBody:
    """Decode a body of the kind `default`. Raises BodyError with the bare message, as deletions report it."""
    content = _read(data, codec, default)
    gvk = with_defaults(content.named if content.named is not None else interpret(content.value), default)
    body = _decoded(content, gvk, scheme, data)
    if gvk.kind != default.kind:
        raise BodyError(unknown_conversion(_type_of(gvk, scheme, data).node.go_type, default), gvk)
    return body if strict else DecodedBody(body.obj, gvk)


def decode_any(data: bytes, *, codec: Codec, scheme: Scheme) -> DecodedBody:
    """Decode an object of any kind. Raises BodyError."""
    content = _read(data, codec, NO_TYPE)
    return _decoded(content, content.named if content.named is not None else interpret(content.value), scheme, data)


def _decoded(content: _Content, gvk: GroupVersionKind, scheme: Scheme, data: bytes) -> DecodedBody:
    kind = _type_of(gvk, scheme, data)
    try:
        decoded = _decode(content, kind)
    except DecodeError as error:
        raise BodyError(str(error), gvk) from None
    obj = decoded.obj
    if kind.raw_fields is not None:
        fields = kind.raw_fields
        if content.text is None:
            sort_raw(fields, obj)
        else:
            keep_raw(fields, content.text, obj)
    if "kind" not in obj or "apiVersion" not in obj:
        obj["kind"], obj["apiVersion"] = gvk.kind, gvk.api_version
    return DecodedBody(obj, gvk, decoded.strict_errors)


@dataclass(slots=True)
class _Content:
    """A decoded body: its value, its text if the value is lossy, its document if a field is duplicate, the reader's
    strict errors; for CBOR the bytes and the kind."""

    value: Any
    text: bytes | None = None
    document: Any = None
    strict_errors: tuple[str, ...] = ()
    cbor: bytes | None = None
    named: GroupVersionKind | None = None


def _read(data: bytes, codec: Codec, default: GroupVersionKind) -> _Content:
    if codec is Codec.CBOR:
        value = read_cbor(data, default, typed=True)
        return _Content(value, cbor=data, named=interpret_cbor(value))
    if codec is Codec.JSON:
        try:
            parsed = parse(data)
        except JsonError as error:
            raise BodyError(f"{NO_VERSION_OR_KIND}{interpretation_error(data) or error}") from None
        return _Content(parsed.value, data, parsed.document if parsed.duplicates else None)
    try:
        yaml = parse_yaml(data)
    except YamlError as error:
        raise BodyError(str(error)) from None
    return _Content(yaml.value, strict_errors=(yaml.strict_error,) if yaml.strict_error else ())


def read_cbor(data: bytes, default: GroupVersionKind, *, typed: bool) -> Any:
    """Return the value of a CBOR body. Raises BodyError with the body's kind, if readable."""
    from pilothouse.machinery.cbor.decoding import decode
    from pilothouse.machinery.cbor.typed import named_in
    from pilothouse.machinery.cbor.wellformed import CborError, MalformedCbor

    try:
        return decode(data, typed=typed)
    except MalformedCbor as error:
        raise cbor_type_error(error) from None
    except CborError as error:
        try:
            named = named_in(data)
        except CborError as sooner:
            raise cbor_type_error(sooner) from None
        raise BodyError(str(error), with_defaults(named, default)) from None


def _type_of(gvk: GroupVersionKind, scheme: Scheme, data: bytes) -> ObjectType:
    if not gvk.kind or not gvk.version:
        missing = "apiVersion" if gvk.kind else "Kind"
        raise BodyError(f"Object '{missing}' is missing in '{data.decode('utf-8', 'replace')}'", gvk)
    kind = scheme.type_of(gvk)
    if kind is None:
        raise BodyError(scheme.unknown_kind(gvk), gvk)
    return kind


def _decode(content: _Content, kind: ObjectType) -> Decoded:
    value = {} if content.value is None else content.value
    if content.cbor is not None:
        from pilothouse.machinery.cbor.typed import decode_typed

        return decode_typed(kind, value, content.cbor)
    try:
        if content.document is None:
            return Decoded(kind.fit(value), content.strict_errors)
    except Mismatch:
        pass
    document = value
    if content.text is not None:  # the document has the notation of numbers and duplicate fields
        document = parse_document(content.text) if content.document is None else content.document
    decoded = kind.decode_document(document)
    return Decoded(decoded.obj, content.strict_errors + decoded.strict_errors)
