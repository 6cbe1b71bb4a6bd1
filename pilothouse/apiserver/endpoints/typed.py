"""The decoder of built-in kinds, based on their compiled types."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.registry import PROTOBUF
from pilothouse.machinery.apply.atoms import Atom, atom_of
from pilothouse.machinery.codec.body_errors import BodyError, refusal, strict_refusal
from pilothouse.machinery.codec.decoder import Codec, decode_body, decode_object
from pilothouse.machinery.codec.json import dump_spelled
from pilothouse.machinery.codec.scheme import (
    INTERNAL_VERSION,
    KUBE,
    OPTIONS,
    Scheme,
    internal_name,
    interpret,
    unknown_conversion,
    with_defaults,
)
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import PatchSchema
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import DecodeError, ObjectType
from pilothouse.machinery.schema.raw_json import RawFields

_META = "meta.k8s.io"
_TYPE_META = frozenset({"apiVersion", "kind"})


class TypedDecoder:
    """Decodes objects of a built-in kind. Unknown fields are dropped, or rejected with strict validation.

    >>> from pilothouse.apiserver import GroupVersionKind, TypedDecoder
    >>> decoder = TypedDecoder(GroupVersionKind("", "v1", "ConfigMap"))
    >>> decoder.normalise({"apiVersion": "v1", "kind": "ConfigMap", "dat": {}}).strict_errors
    ('unknown field "dat"',)
    """

    def __init__(self, kind: GroupVersionKind, scheme: Scheme = KUBE) -> None:
        self.kind = kind
        self.scheme = scheme

    @cached_property
    def type(self) -> ObjectType:
        found = types.of(self.kind)
        assert found is not None, f"{self.kind} is no built-in kind"
        return found

    @property
    def patch_schema(self) -> PatchSchema | None:
        return self.type.patch_schema

    @property
    def raw_fields(self) -> RawFields | None:
        return self.type.raw_fields

    @cached_property
    def atom(self) -> Atom:
        return atom_of(self.type.node)

    @property
    def fits_atom(self) -> bool:
        return True

    @cached_property
    def empty(self) -> Json:
        return self.type.fit({})

    def empty_content(self) -> Json:
        """The fields of the kind's zero value besides metadata, such as `spec: {}`."""
        return {key: value for key, value in self.empty.items() if key != "metadata"}

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        if serializer is PROTOBUF:
            return self._decode_protobuf(data)
        body = decode_object(
            data, codec=Codec(serializer.media_type), default=self.kind, scheme=self.scheme, strict=True
        )
        if strict and body.strict_errors:
            raise strict_refusal(body.gvk, self.kind, body.strict_errors)
        return DecodedObject(body.obj, body.gvk, body.strict_errors)

    def normalise(self, value: Any, *, spelled: bool = False) -> DecodedObject:
        internal = GroupVersionKind(self.kind.group, INTERNAL_VERSION, self.kind.kind)
        try:
            named = with_defaults(interpret(value), internal)
        except BodyError as error:
            raise DecodeError(str(error)) from None
        if named == internal:
            # The internal type has other field names: no field of the object matches.
            unknown = tuple(f'unknown field "{name}"' for name in value or () if name not in _TYPE_META)
            return DecodedObject(self.type.fit({}), self.kind, unknown)
        if named != self.kind:
            raise DecodeError(self._not_convertible(named, value))
        if not value.get("kind"):
            value = {**value, "kind": self.kind.kind}
        decoded = self.type.decode_document(value) if spelled else self.type.decode(value)
        return DecodedObject(decoded.obj, self.kind, decoded.strict_errors)

    def _not_convertible(self, named: GroupVersionKind, value: Any) -> str:
        if not named.version:
            return f"Object 'apiVersion' is missing in '{dump_spelled(value).decode()}'"
        is_internal = named.version == INTERNAL_VERSION
        version = self.kind.version if is_internal else named.version
        found = self.scheme.type_of(GroupVersionKind(named.group, version, named.kind))
        if found is None:
            return self.scheme.unknown_kind(named)
        return unknown_conversion(internal_name(named) if is_internal else found.node.go_type, self.kind)

    def read_changed(self, value: Any) -> DecodedObject:
        if not isinstance(value, dict):
            return self.normalise(value)
        obj = {**value, "kind": value.get("kind") or self.kind.kind}
        obj["apiVersion"] = value.get("apiVersion") or self.kind.api_version
        if (kind := _kind_of(obj)) != self.kind:
            found = types.of(kind)
            raise DecodeError(
                unknown_conversion(found.node.go_type, self.kind) if found else self.scheme.unknown_kind(kind)
            )
        return self.normalise(obj)

    def convert(self, value: Json) -> DecodedObject:
        decoded = self.type.convert(value)
        return DecodedObject(decoded.obj, self.kind, decoded.strict_errors)

    def printed(self, obj: Json) -> Json:
        return self.type.printed(obj)

    def owned(self, obj: Json) -> Json:
        return self.type.owned(obj)

    def _decode_protobuf(self, data: bytes) -> DecodedObject:
        try:
            obj = _read_protobuf(data, self.kind)
        except BodyError as error:
            raise refusal(error, self.kind, data) from None
        kind = _kind_of(obj)
        if kind.kind != self.kind.kind:
            found = types.of(kind)
            reason = unknown_conversion(found.node.go_type, self.kind) if found else self.scheme.unknown_kind(kind)
            raise BadRequest(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {self.kind.kind}: {reason}'
            )
        return DecodedObject(obj, kind)


def decode_meta_options(serializer: Serializer, data: bytes, kind: str) -> Json:
    """Decode DeleteOptions and similar options of any group and version. Raises BadRequest."""
    default = GroupVersionKind(_META, "v1", kind)
    try:
        if serializer is PROTOBUF:
            return _read_protobuf(data, default)
        return decode_body(data, codec=Codec(serializer.media_type), default=default, scheme=OPTIONS, strict=False).obj
    except BodyError as error:
        raise BadRequest(str(error)) from None


def _read_protobuf(data: bytes, default: GroupVersionKind) -> Json:
    """Raises BodyError."""
    from pilothouse.machinery.protobuf import codec as protobuf
    from pilothouse.machinery.protobuf.wire import ProtobufError

    try:
        return protobuf.decode(data, default=default)
    except ProtobufError as error:
        raise BodyError(str(error)) from None


def _kind_of(obj: Json) -> GroupVersionKind:
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    return GroupVersionKind(group, version, str(obj.get("kind")))
