"""The decoder of kinds without a compiled type: typed metadata, all other fields as sent."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.protobuf import UnstructuredProtobufSerializer, not_marshalable
from pilothouse.machinery.apply.atoms import DEDUCED, Atom
from pilothouse.machinery.codec.body_errors import BodyError, refusal, strict_refusal
from pilothouse.machinery.codec.decoder import Codec, read_cbor
from pilothouse.machinery.codec.json import JsonError, dump_spelled, parse_untyped, untyped
from pilothouse.machinery.codec.json_syntax import interpretation_error
from pilothouse.machinery.codec.scheme import interpret, interpret_cbor
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import PatchSchema
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.schema.printing import canonical_object_meta
from pilothouse.machinery.schema.raw_json import RawFields
from pilothouse.machinery.schema.tree import object_meta_type
from pilothouse.machinery.server_errors import InternalError


@dataclass(frozen=True, slots=True)
class _Read:
    value: Any
    strict_errors: tuple[str, ...] = ()


class UnstructuredDecoder:
    """Decodes objects of a kind without a schema; implements ObjectDecoder. Every field is kept.

    >>> from pilothouse.apiserver import GroupVersionKind, UnstructuredDecoder
    >>> decoder = UnstructuredDecoder(GroupVersionKind("wardle.example.com", "v1", "Flunder"))
    >>> flunder = {"apiVersion": "wardle.example.com/v1", "kind": "Flunder", "metadata": {"name": "a"}, "colour": "red"}
    >>> decoder.normalise(flunder).obj["colour"]
    'red'
    """

    def __init__(self, kind: GroupVersionKind) -> None:
        self.kind = kind

    @property
    def patch_schema(self) -> PatchSchema | None:
        return None

    @property
    def raw_fields(self) -> RawFields | None:
        return None

    @property
    def atom(self) -> Atom:
        return DEDUCED

    @property
    def fits_atom(self) -> bool:
        return True

    @cached_property
    def empty(self) -> Json:
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {}}

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        try:
            read = _read(serializer, data, self.kind)
            decoded = self._decode(read, data)
        except BodyError as error:
            raise refusal(error, self.kind, data) from None
        if serializer.media_type == Codec.CBOR.value:  # upstream reports no unknown fields of CBOR
            return DecodedObject(decoded.obj, decoded.kind)
        if strict and decoded.strict_errors:
            raise strict_refusal(decoded.kind, self.kind, decoded.strict_errors)
        return decoded

    def normalise(self, value: Any, *, spelled: bool = False) -> DecodedObject:
        decoded = self._normalised(value, spelled=spelled)
        if not decoded.kind.version:
            raise InternalError.of("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        return decoded

    def read_changed(self, value: Any) -> DecodedObject:
        decoded = self._normalised(value)
        if not decoded.kind.version:
            raise DecodeError(f"Object 'apiVersion' is missing in '{dump_spelled(value).decode()}'")
        if not self.knows(decoded.kind):
            found = decoded.kind.group_version
            raise DecodeError(f"request to convert CR from an invalid group/version: {found}")
        return decoded

    def _normalised(self, value: Any, *, spelled: bool = False) -> DecodedObject:
        data = dump_spelled(value, sort_keys=True)
        try:
            return self._decode(_Read(untyped(value) if spelled else value), data)
        except BodyError as error:
            raise DecodeError(str(error)) from None

    def convert(self, value: Json) -> DecodedObject:
        """Return the object unchanged: an apply has validated all fields against the schema, if there is one."""
        return DecodedObject(value, self.kind)

    def printed(self, obj: Json) -> Json:
        """Return the object unchanged: objects without a Go type have no omitted fields."""
        return obj

    def owned(self, obj: Json) -> Json:
        return obj

    def knows(self, kind: GroupVersionKind) -> bool:
        """Return whether objects of this group and version can be decoded."""
        return kind.group_version == self.kind.group_version

    def fit(self, obj: Json, named: GroupVersionKind) -> list[str]:
        """Drop unknown fields besides metadata, and return the strict errors.

        Raises DecodeError for objects that cannot be decoded as the kind.
        """
        if named != self.kind:
            raise DecodeError(f"only {self.kind} is served here")
        return []

    def _decode(self, read: _Read, data: bytes) -> DecodedObject:
        """Raises BodyError."""
        named = interpret(read.value)
        obj = read.value
        if not named.kind or obj is None:
            raise BodyError(f"Object 'Kind' is missing in '{data.decode('utf-8', 'replace')}'")
        if not named.version and "apiVersion" in obj and obj["apiVersion"] is None:
            raise BodyError(".apiVersion accessor error: <nil> is of the type <nil>, expected string", named)
        if not named.version:  # a caller that requires a version rejects it
            return DecodedObject(obj, named, read.strict_errors)
        try:
            unknown = [*_coerce_metadata(obj), *self.fit(obj, named)]
        except DecodeError as error:
            raise BodyError(str(error), named) from None
        return DecodedObject(obj, named, (*read.strict_errors, *unknown))


def _read(serializer: Serializer, data: bytes, default: GroupVersionKind) -> _Read:
    """Raises BodyError."""
    if isinstance(serializer, UnstructuredProtobufSerializer):
        raise BodyError(not_marshalable("Unstructured").message, default)
    if serializer.media_type == Codec.CBOR.value:
        return _Read(_read_cbor(data, default))
    try:
        if serializer.media_type == Codec.YAML.value:
            yaml = parse_yaml(data)
            return _Read(untyped(yaml.value), (yaml.strict_error,) if yaml.strict_error else ())
        json = parse_untyped(data)
    except YamlError as error:
        raise BodyError(str(error)) from None
    except JsonError as error:
        raise BodyError(f"{NO_VERSION_OR_KIND}{interpretation_error(data) or error}") from None
    return _Read(json.value, json.duplicates)


def _read_cbor(data: bytes, default: GroupVersionKind) -> Any:
    """Decode CBOR. Raises BodyError, also for an object without kind and version, which could not be converted to
    JSON."""
    from pilothouse.machinery.cbor.decoding import diagnose

    value = read_cbor(data, default, typed=False)
    named = interpret_cbor(
        {key: member for key, member in value.items() if isinstance(member, str)} if isinstance(value, dict) else value
    )
    if not named.kind or (not named.version and value.get("apiVersion")):
        raise BodyError(f"Object 'Kind' is missing in '{diagnose(data)}'")
    if not named.version:
        raise BodyError(f"Object 'apiVersion' is missing in '{diagnose(data)}'", named)
    return value


def _coerce_metadata(obj: Json) -> list[str]:
    """Return the strict errors of the metadata. Raises DecodeError for invalid metadata."""
    if "metadata" not in obj:
        return []
    node = object_meta_type()
    report = examine(node, obj["metadata"])
    if report.error:
        raise DecodeError(report.error)
    obj["metadata"] = canonical_object_meta(obj["metadata"] or {})
    return [strict.replace(' field "', ' field "metadata.', 1) for strict in report.strict]
