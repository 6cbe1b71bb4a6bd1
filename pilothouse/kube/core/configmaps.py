"""ConfigMaps, and the rules for keys, size and immutability that Secrets share."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column, count
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, forbidden, invalid, root, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_config_map_key


class ConfigMapStrategy(KubeStrategy):
    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_keys(obj, "data")
        binary = obj.get("binaryData") or {}
        for key in sorted((obj.get("data") or {}).keys() & binary.keys()):
            yield invalid(root("data").key(key), key, "duplicate of key present in binaryData")
        yield from validate_keys(obj, "binaryData")
        if _size(obj) > MAX_SIZE:
            yield too_long("[]", MAX_SIZE)  # upstream prints a path with an empty name as []

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if old.get("immutable"):
            # Only `data` defaults to an empty map: changing binaryData from absent to empty is an error.
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


MAX_SIZE = 1024 * 1024


def validate_keys(obj: Json, field: str) -> Errors:
    for key in sorted(obj.get(field) or {}):
        for problem in is_config_map_key(key):
            yield invalid(root(field).key(key), key, problem)


def forbid_change(obj: Json, old: Json, *fields: str) -> Errors:
    """Reject changes of these fields. Call only for objects with `immutable: true`."""
    for field in fields:
        if obj.get(field) != old.get(field):
            yield forbidden(root(field), "field is immutable when `immutable` is set")


def byte_length(base64_text: str) -> int:
    """Return the decoded size of a base64 text in bytes."""
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")
