"""Flunders: a resource of this server's own. A flunder refers to another one, or to a fischer."""

from __future__ import annotations

from typing import Any, ClassVar

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.endpoints.options import metadata_fields_only
from pilothouse.apiserver.endpoints.patch_types import SCHEMALESS_PATCHES
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.registry import UNSTRUCTURED
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.machinery.apply.atoms import DEDUCED, Atom
from pilothouse.machinery.codec.json import JsonError, parse_untyped
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, not_supported, required, root
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.schema import PatchSchema
from pilothouse.machinery.schema.object_type import DecodeError

GROUP_VERSION = GroupVersion("wardle.example.com", "v1alpha1")
KIND = GROUP_VERSION.kind("Flunder")
REFERENCE_TYPES = ("Flunder", "Fischer")


class FlunderStrategy(Strategy):
    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("reference") and not spec.get("referenceType"):
            spec["referenceType"] = REFERENCE_TYPES[0]

    def validate(self, obj: Json) -> Errors:
        yield from super().validate(obj)
        yield from self._validate_reference(obj["spec"])

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from super().validate_update(obj, old)
        yield from self._validate_reference(obj["spec"])

    def _validate_reference(self, spec: Json) -> Errors:
        kind, path = spec.get("referenceType"), root("spec", "referenceType")
        if kind is not None and kind not in REFERENCE_TYPES:
            yield not_supported(path, kind, REFERENCE_TYPES)
        elif kind is not None and not spec.get("reference"):
            yield required(root("spec", "reference"), "a reference type needs a reference")


class FlunderDecoder:
    """Is an ObjectDecoder. Whatever stands in a flunder is kept: there is no schema to go by."""

    patch_schema: PatchSchema | None = None
    atom: Atom = DEDUCED
    empty: ClassVar[Json] = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {}}

    def decode(self, serializer: Serializer, data: bytes, *, strict: bool) -> DecodedObject:
        try:
            value = parse_yaml(data).value if serializer.media_type.endswith("yaml") else parse_untyped(data).value
            return self.normalise(value)
        except (JsonError, YamlError, DecodeError) as error:
            raise BadRequest(f"the object provided is no {KIND.kind}: {error}") from None

    def normalise(self, value: Any) -> DecodedObject:
        if not isinstance(value, dict) or value.get("kind", KIND.kind) != KIND.kind:
            raise DecodeError(f"expected a {KIND.kind}")
        for field in ("metadata", "spec"):
            if not isinstance(value.setdefault(field, {}), dict):
                raise DecodeError(f"{field} is no object")
        value["apiVersion"], value["kind"] = KIND.api_version, KIND.kind
        return DecodedObject(value, KIND)

    def read_changed(self, value: Any) -> DecodedObject:
        return self.normalise(value)

    def convert(self, value: Json) -> DecodedObject:
        return self.normalise(value)


FLUNDERS = Resource(
    names=Names("flunders", kind="Flunder", short=["fl"]),
    strategy=FlunderStrategy(),
    group=GROUP_VERSION.group,
    version=GROUP_VERSION.version,
    columns=[NAME, Column("Reference", lambda obj: obj["spec"].get("reference") or "<none>"), AGE],
)


def api_group(registry: RegistryStore) -> APIGroup:
    served = ServedResource(
        names=FLUNDERS.names,
        namespaced=True,
        storage=registry,
        kind=KIND,
        decoder=FlunderDecoder(),
        storage_version=KIND.group_version,
        default=FLUNDERS.strategy.default,
        convert_field=metadata_fields_only,
        columns=FLUNDERS.columns,
        serializers=UNSTRUCTURED,
        patch_types=SCHEMALESS_PATCHES,
        typed_items=True,
    )
    return APIGroup(GROUP_VERSION.group, [APIVersion(GROUP_VERSION, [served])])
