"""The object types that expressions may name, as protobuf descriptors: the compiler knows structs in no other form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pilothouse.machinery.cel.signatures import OPAQUE_TYPES

_ANYTHING = "google.protobuf.Value"
_TIME = "google.protobuf.Timestamp"
_TEXT, _TEXTS, _NUMBER, _FLAG, _MAP = "string", "list", "int", "bool", "map"
_GVK = {"group": _TEXT, "version": _TEXT, "kind": _TEXT}
_GVR = {"group": _TEXT, "version": _TEXT, "resource": _TEXT}
_SELECTOR = {"rawSelector": _TEXT, "requirements": "list:kubernetes.SelectorRequirement"}

_MESSAGES: dict[str, dict[str, str]] = {
    "kubernetes.GroupVersionKind": _GVK,
    "kubernetes.GroupVersionResource": _GVR,
    "kubernetes.UserInfo": {"username": _TEXT, "uid": _TEXT, "groups": _TEXTS, "extra": _ANYTHING},
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": _TEXT,
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": _TEXT,
        "userInfo": "kubernetes.UserInfo",
        "dryRun": _FLAG,
        "options": _ANYTHING,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceCondition": {
        "status": _TEXT,
        "type": _TEXT,
        "lastTransitionTime": _TIME,
        "message": _TEXT,
        "reason": _TEXT,
    },
    "kubernetes.NamespaceStatus": {"conditions": "list:kubernetes.NamespaceCondition", "phase": _TEXT},
    "kubernetes.NamespaceMetadata": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "labels": _MAP,
        "annotations": _MAP,
        "UID": _TEXT,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _NUMBER,
        "deletionTimestamp": _TIME,
        "generation": _NUMBER,
        "resourceVersion": _TEXT,
        "finalizers": _TEXTS,
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
    "kubernetes.variables": {},
    "kubernetes.DRADevice": {
        "driver": _TEXT,
        "allowMultipleAllocations": _FLAG,
        "attributes": _ANYTHING,
        "capacity": _ANYTHING,
    },
    "kubernetes.SelectorRequirement": {"key": _TEXT, "operator": _TEXT, "values": _TEXTS},
    "kubernetes.FieldSelectorAttributes": _SELECTOR,
    "kubernetes.LabelSelectorAttributes": _SELECTOR,
    "kubernetes.ResourceAttributes": {
        "namespace": _TEXT,
        "verb": _TEXT,
        "group": _TEXT,
        "version": _TEXT,
        "resource": _TEXT,
        "subresource": _TEXT,
        "name": _TEXT,
        "fieldSelector": "kubernetes.FieldSelectorAttributes",
        "labelSelector": "kubernetes.LabelSelectorAttributes",
    },
    "kubernetes.NonResourceAttributes": {"path": _TEXT, "verb": _TEXT},
    "kubernetes.SubjectAccessReviewSpec": {
        "resourceAttributes": "kubernetes.ResourceAttributes",
        "nonResourceAttributes": "kubernetes.NonResourceAttributes",
        "user": _TEXT,
        "groups": _TEXTS,
        "extra": _ANYTHING,
        "uid": _TEXT,
    },
}
_JSON_PATCH = {"JSONPatch": {"op": _TEXT, "path": _TEXT, "from": _TEXT, "value": _ANYTHING}}
"""Only where an expression may make patches."""

_PATCH_TYPE = re.compile(r"\bObject(?:\.\w+)*(?=\s*\{)")
_MANGLED_TYPE = re.compile(r"\bObject(?:_\w+)+\b")
_FIELD = re.compile(r"\b[A-Za-z_]\w*(?=\s*:)")


def mangled(expression: str) -> str:
    """The expression with types such as Object.metadata renamed to Object_metadata, because a protobuf message cannot
    have both a field and a nested type of one name. Positions do not move."""
    return _PATCH_TYPE.sub(lambda found: found[0].replace(".", "_"), expression)


def unmangled(message: str) -> str:
    return _MANGLED_TYPE.sub(lambda found: found[0].replace("_", "."), message)


def patch_types(expression: str) -> tuple[str, ...]:
    """The types that a mangled expression makes objects of."""
    return tuple(sorted({"Object", *_PATCH_TYPE.findall(expression), *_MANGLED_TYPE.findall(expression)}))


def patch_fields(expression: str) -> tuple[str, ...]:
    """Return all names that might be fields of a patch's object: one that is merged into another may have any."""
    return tuple(sorted(set(_FIELD.findall(expression))))


@cache
def descriptor_pool() -> Any:
    """A pool with Kubernetes' own types, which everybody shares."""
    return new_descriptor_pool()


def new_descriptor_pool(types: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> Any:
    """A pool with Kubernetes' own types, to be added to.

    With `types` that patches are made of, each has all of the fields, and there are JSON patches too."""
    from google.protobuf import descriptor_pool as pools

    pool = pools.DescriptorPool()
    for file in _well_known_files():
        pool.AddSerializedFile(file.serialized_pb)
    patches = {**_JSON_PATCH, **dict.fromkeys(types, dict.fromkeys(fields, _ANYTHING))} if types else {}
    _add_messages(pool, {**_MESSAGES, **{name: {} for name in OPAQUE_TYPES}, **patches})
    return pool


def _well_known_files() -> Iterable[Any]:
    from google.protobuf import any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

    modules = (any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    return [module.DESCRIPTOR for module in modules]


def _add_messages(pool: Any, messages: Mapping[str, Mapping[str, str]]) -> None:
    from google.protobuf import descriptor_pb2

    packages: dict[str, Any] = {}
    for full_name, fields in messages.items():
        package, _, name = full_name.rpartition(".")
        if package not in packages:
            packages[package] = descriptor_pb2.FileDescriptorProto(
                name=f"{package or 'root'}.proto",
                package=package,
                syntax="proto2",
                dependency=["google/protobuf/struct.proto", "google/protobuf/timestamp.proto"],
            )
        _add_fields(packages[package].message_type.add(name=name), full_name, fields)
    for file in packages.values():
        pool.AddSerializedFile(file.SerializeToString())


def _add_fields(message: Any, full_name: str, fields: Mapping[str, str]) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    plain = {_TEXT: Field.TYPE_STRING, _TEXTS: Field.TYPE_STRING, _NUMBER: Field.TYPE_INT64, _FLAG: Field.TYPE_BOOL}
    for number, (name, kind) in enumerate(fields.items(), start=1):
        repeated = kind in (_TEXTS, _MAP) or kind.startswith("list:")
        field = message.field.add(name=name, number=number)
        field.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
        if kind in plain:
            field.type = plain[kind]
            continue
        field.type = Field.TYPE_MESSAGE
        entry = f"{name[0].upper()}{name[1:]}Entry"
        field.type_name = f".{full_name}.{entry}" if kind == _MAP else f".{kind.removeprefix('list:')}"
        if kind == _MAP:
            _add_map_entry(message, entry)


def _add_map_entry(message: Any, name: str) -> None:
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    _add_fields(entry, name, {"key": _TEXT, "value": _TEXT})
