"""A whole body to an object of a built-in kind, refused in the words of upstream's decoders.

    body = decode_object(data, codec=Codec.JSON, default=DEPLOYMENT, scheme=KUBE, strict=True)
    body.obj, body.gvk, body.strict_errors

The kind and version in the body count; the resource's own stand in where the body has none. The object has both.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.codec.json import JsonError, parse, parse_document
from pilothouse.machinery.codec.json_syntax import interpretation_error
from pilothouse.machinery.codec.scheme import Scheme, unknown_conversion
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.examine import TypeProblem, word_for
from pilothouse.machinery.schema.object_type import Decoded, DecodeError, ObjectType
from pilothouse.machinery.schema.raw_json import RawFields, keep_raw, sort_raw
from pilothouse.machinery.schema.scalars import Mismatch

_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SUMMARY_LENGTH = 30


class Codec(Enum):
    JSON = "application/json"
    YAML = "application/yaml"
    CBOR = "application/cbor"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """`strict_errors` are unknown and duplicate fields, in upstream's order; always empty without `strict`."""

    obj: Json
    gvk: GroupVersionKind
    strict_errors: tuple[str, ...] = ()


class BodyError(ValueError):
    """The body cannot be decoded. `gvk` is the kind it would have been, as far as that could be read."""

    def __init__(self, message: str, gvk: GroupVersionKind | None = None) -> None:
        super().__init__(message)
        self.gvk = gvk


def decode_object(
    data: bytes, *, codec: Codec, default: GroupVersionKind, scheme: Scheme, strict: bool = True
) -> DecodedBody:
    """Return the object, as `decode_body` does. Raises the BadRequest that creates and replacements answer with."""
    try:
        return decode_body(data, codec=codec, default=default, scheme=scheme, strict=strict)
    except BodyError as error:
        raise refusal(error, default, data) from None


def strict_refusal(body: DecodedBody, default: GroupVersionKind) -> BadRequest:
    """Return the error that fieldValidation=Strict answers to a body with strict errors."""
    return BadRequest(_cannot_be_handled(body.gvk, default, strict_error(body.strict_errors)))


def strict_error(errors: tuple[str, ...]) -> str:
    return "strict decoding error: " + ", ".join(errors)


def refusal(error: BodyError, default: GroupVersionKind, data: bytes) -> BadRequest:
    """Return the error that creates and replacements answer to a body that cannot be decoded."""
    if error.gvk is not None and error.gvk.kind:
        return BadRequest(_cannot_be_handled(error.gvk, default, str(error)))
    what = f"the object provided is unrecognized (must be of type {default.kind})"
    return BadRequest(f"{what}: {error} ({_summary(data)})")


def _cannot_be_handled(gvk: GroupVersionKind, default: GroupVersionKind, why: str) -> str:
    return f"{gvk.kind} in version {quote(gvk.version)} cannot be handled as a {default.kind}: {why}"


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    start = data[:_SUMMARY_LENGTH]
    text = start.decode("utf-8", "replace") if data.startswith(b"{") else start.hex()
    return f"{text} ..." if len(data) > _SUMMARY_LENGTH else text


def decode_body(
    data: bytes, *, codec: Codec, default: GroupVersionKind, scheme: Scheme, strict: bool = True
) -> DecodedBody:
    """Raises BodyError with the bare message, which is what deletions answer with."""
    content = _read(data, codec, default)
    gvk = with_defaults(content.named if content.named is not None else interpret(content.value), default)
    body = _decoded(content, gvk, scheme, data)
    if gvk.kind != default.kind:
        raise BodyError(unknown_conversion(_type_of(gvk, scheme, data), default), gvk)
    return body if strict else DecodedBody(body.obj, gvk)


def decode_any(data: bytes, *, codec: Codec, scheme: Scheme) -> DecodedBody:
    """Return an object of whatever kind the body names. Raises BodyError."""
    content = _read(data, codec, _NO_TYPE)
    return _decoded(content, content.named if content.named is not None else interpret(content.value), scheme, data)


def _decoded(content: _Content, gvk: GroupVersionKind, scheme: Scheme, data: bytes) -> DecodedBody:
    kind = _type_of(gvk, scheme, data)
    try:
        decoded = _decode(content, kind)
    except DecodeError as error:
        raise BodyError(str(error), gvk) from None
    obj = decoded.obj
    if kind.raw_fields is not None:
        _keep_raw(content, kind.raw_fields, obj)
    if "kind" not in obj or "apiVersion" not in obj:
        obj["kind"], obj["apiVersion"] = gvk.kind, gvk.api_version
    return DecodedBody(obj, gvk, decoded.strict_errors)


@dataclass(slots=True)
class _Content:
    """A body's value; its text where that tells more than the value; the document where a field stands in it twice;
    what the reader itself said in strict mode; and of CBOR its bytes, and the type that it names."""

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
    return _read_json(data) if codec is Codec.JSON else _read_yaml(data)


def _read_json(data: bytes) -> _Content:
    try:
        read = parse(data)
    except JsonError as error:
        raise BodyError(f"{NO_VERSION_OR_KIND}{interpretation_error(data) or error}") from None
    return _Content(read.value, data, read.document if read.duplicates else None)


def _read_yaml(data: bytes) -> _Content:
    try:
        read = parse_yaml(data)
    except YamlError as error:
        raise BodyError(str(error)) from None
    return _Content(read.value, strict_errors=(read.strict_error,) if read.strict_error else ())


def read_cbor(data: bytes, default: GroupVersionKind, *, typed: bool) -> Any:
    """Return the value in the body. Raises BodyError, with the type that the body names as far as it can be read."""
    from pilothouse.machinery.cbor.decoding import decode
    from pilothouse.machinery.cbor.type_meta import named_in
    from pilothouse.machinery.cbor.wellformed import CborError, MalformedCbor

    try:
        return decode(data, typed=typed)
    except MalformedCbor as error:
        raise _no_type_in_cbor(error) from None
    except CborError as error:
        try:
            named = named_in(data)
        except CborError as sooner:
            raise _no_type_in_cbor(sooner) from None
        raise BodyError(str(error), with_defaults(named, default)) from None


def interpret_cbor(value: Any) -> GroupVersionKind:
    """The type that a value from CBOR names. Raises BodyError."""
    from pilothouse.machinery.cbor.type_meta import named_by
    from pilothouse.machinery.cbor.wellformed import CborError

    try:
        return named_by(value)
    except CborError as error:
        raise _no_type_in_cbor(error) from None


def _no_type_in_cbor(error: ValueError) -> BodyError:
    return BodyError(f"unable to determine group/version/kind: {error}")


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
    decoded = kind.decode_document(_document(content, value))
    return Decoded(decoded.obj, content.strict_errors + decoded.strict_errors)


def _keep_raw(content: _Content, fields: RawFields, obj: Json) -> None:
    """Raw values are as the text has them; those from YAML are made of maps."""
    if content.text is None:
        sort_raw(fields, obj)
    else:
        keep_raw(fields, content.text, obj)


def _document(content: _Content, value: Any) -> Any:
    """Return the document, which tells how numbers are spelled and which fields stand there twice."""
    if content.text is None:
        return value
    return parse_document(content.text) if content.document is None else content.document


def interpret(value: Any) -> GroupVersionKind:
    """The type that the value names. Raises BodyError."""
    if value is None:
        return _NO_TYPE
    if not isinstance(value, dict):
        raise _no_type(TypeProblem(word_for(value), _TYPE_META))
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if type(api_version) is not str or type(kind) is not str:
        names = _loosely_named(value)
        api_version, kind = names["apiVersion"], names["kind"]
    try:
        return _named(api_version, kind)
    except ValueError as error:
        raise BodyError(str(error)) from None


_NO_TYPE = GroupVersionKind("", "", "")


@bounded_cache(entries=1024, key_bytes=512)
def _named(api_version: str, kind: str) -> GroupVersionKind:
    return GroupVersion.parse(api_version).kind(kind)


def _loosely_named(value: Json) -> dict[str, str]:
    """Keys in whatever capitals: Go looks for the type more generously than it decodes."""
    found = {"apiVersion": "", "kind": ""}
    names = {name.lower(): name for name in found}
    for key, member in value.items():
        name = names.get(key.lower())
        if name is None or member is None:
            continue
        if not isinstance(member, str):
            raise _no_type(TypeProblem(word_for(member), "string", stack=(name,)))
        found[name] = member
    return found


def _no_type(problem: TypeProblem) -> BodyError:
    return BodyError(f"{NO_VERSION_OR_KIND}{problem}")


def with_defaults(gvk: GroupVersionKind, default: GroupVersionKind) -> GroupVersionKind:
    """Return the kind with its empty parts taken from the default; the version is taken only where the groups agree."""
    group, version = gvk.group, gvk.version
    if version and gvk.kind:
        return gvk
    if not version and group in ("", default.group):
        group, version = default.group, default.version
    return GroupVersionKind(group, version, gvk.kind or default.kind)
