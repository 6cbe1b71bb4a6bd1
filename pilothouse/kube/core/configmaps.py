"""ConfigMaps."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column, count
from pilothouse.kube.core.config_data import MAX_SIZE, byte_length, forbid_change, validate_keys
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, invalid, root, too_long
from pilothouse.machinery.objects import Json


class ConfigMapStrategy(KubeStrategy):
    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_keys(obj, "data")
        binary = obj.get("binaryData") or {}
        for key in sorted((obj.get("data") or {}).keys() & binary.keys()):
            yield invalid(root("data").key(key), key, "duplicate of key present in binaryData")
        yield from validate_keys(obj, "binaryData")
        if _size(obj) > MAX_SIZE:
            yield too_long("[]", MAX_SIZE)  # which is how upstream prints a path with an empty name

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if old.get("immutable"):
            # Only data is empty by default, so that binary data may not even become empty.
            yield from forbid_change({"data": {}} | obj, {"data": {}} | old, "immutable", "data", "binaryData")
        yield from self.validate(obj)


def _size(obj: Json) -> int:
    text = sum(len(value.encode()) for value in (obj.get("data") or {}).values())
    return text + sum(map(byte_length, (obj.get("binaryData") or {}).values()))


CONFIG_MAPS = Resource(
    names=Names("configmaps", kind="ConfigMap", short=["cm"]),
    strategy=ConfigMapStrategy(),
    columns=[
        NAME,
        Column("Data", count("data", "binaryData"), documented=("io.k8s.api.core.v1.ConfigMap", "data")),
        AGE,
    ],
)
