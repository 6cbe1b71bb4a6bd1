"""Decoding of custom resources: metadata as every kind has it, and of the rest what the version's schema knows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import orjson

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.unstructured_protobuf import (
    UnstructuredProtobufSerializer,
    not_marshalable,
)
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource, canonical_object_meta, object_meta_type
from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.codec.decoder import (
    BodyError,
    DecodedBody,
    interpret,
    refusal,
    strict_refusal,
    with_defaults,
)
from pilothouse.machinery.codec.json import JsonError, parse_untyped
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import NO_VERSION_OR_KIND, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.schema import PatchSchema
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.object_type import DecodeError


@dataclass(frozen=True, slots=True)
class _Read:
    value: Any
    strict_errors: tuple[str, ...] = ()


class CustomResourceDecoder:
    """Decodes objects for one version. As upstream, it reads an object of another version by that version's schema."""

    def __init__(self, resource: CustomResource, version: str) -> None:
        self.resource = resource
        self.kind = resource.kind(version)

    @property
    def patch_schema(self) -> PatchSchema | None:
        return None

    @cached_property
    def atom(self) -> Atom:
        return self.resource.schemas.of(self.kind.version).atom

    @cached_property
    def empty(self) -> Json:
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {}}

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        try:
            read = _read(serializer, data, self.kind)
            decoded = self._decode(read, data)
        except BodyError as error:
            raise refusal(error, self.kind, data) from None
        if strict and decoded.strict_errors:
            raise strict_refusal(DecodedBody(decoded.obj, decoded.kind, decoded.strict_errors), self.kind)
        return decoded

    def normalise(self, value: Any) -> DecodedObject:
        try:
            return self._decode(_Read(value), orjson.dumps(value))
        except BodyError as error:
            raise DecodeError(str(error)) from None

    def read_changed(self, value: Any) -> DecodedObject:
        decoded = self.normalise(value)
        found = decoded.kind.group_version
        if found.group != self.kind.group or found.version not in self.resource.versions:
            raise DecodeError(f"request to convert CR from an invalid group/version: {found}")
        return decoded

    def convert(self, value: Json) -> DecodedObject:
        """An apply has checked every field against the schema already."""
        return DecodedObject(value, self.kind)

    def printed(self, obj: Json) -> Json:
        """Nothing is left out of an object without a Go type."""
        return obj

    def _decode(self, read: _Read, data: bytes) -> DecodedObject:
        """Raises BodyError."""
        named = interpret(read.value)
        obj = read.value
        if not named.kind or obj is None:
            default = with_defaults(named, self.kind)
            raise BodyError(f"Object 'Kind' is missing in '{data.decode('utf-8', 'replace')}'", default)
        if not named.version:
            raise BodyError(f"Object 'apiVersion' is missing in '{data.decode('utf-8', 'replace')}'", named)
        try:
            unknown = self._coerce(obj, named)
        except (DecodeError, MalformedEmbeddedResource) as error:
            raise BodyError(str(error), named) from None
        return DecodedObject(obj, named, (*read.strict_errors, *unknown))

    def _coerce(self, obj: Json, named: GroupVersionKind) -> list[str]:
        unknown = _coerce_metadata(obj)
        if named.group_kind == self.kind.group_kind:
            unknown += self.resource.schemas.of(named.version).prune(obj)
        return unknown


def _read(serializer: Serializer, data: bytes, default: GroupVersionKind) -> _Read:
    """Raises BodyError."""
    if isinstance(serializer, UnstructuredProtobufSerializer):
        raise BodyError(not_marshalable("Unstructured").message, default)
    try:
        if serializer.media_type == "application/yaml":
            yaml = parse_yaml(data)
            return _Read(yaml.value, (yaml.strict_error,) if yaml.strict_error else ())
        json = parse_untyped(data)
    except YamlError as error:
        raise BodyError(str(error)) from None
    except JsonError as error:
        raise BodyError(f"{NO_VERSION_OR_KIND}{error}") from None
    return _Read(json.value, json.duplicates)


def _coerce_metadata(obj: Json) -> list[str]:
    """Answers the strict errors. Raises DecodeError for metadata that is none."""
    if "metadata" not in obj:
        return []
    node = object_meta_type()
    report = examine(node, obj["metadata"])
    if report.error:
        raise DecodeError(report.error)
    obj["metadata"] = canonical_object_meta(obj["metadata"] or {})
    return [strict.replace(' field "', ' field "metadata.', 1) for strict in report.strict]
