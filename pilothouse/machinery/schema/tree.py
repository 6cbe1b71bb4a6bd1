"""Builder of type trees: Go's facts provide the fields, the published definitions provide list types and patch
strategies.

    node_of("k8s.io.api.core.v1", "PodSpec").fields["containers"].node.element   → the node of Container

Each message is built once, on first access, and shared by all trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pilothouse.machinery.generated import field_rules
from pilothouse.machinery.schema.nodes import Field, NodeKind, Scalar, TypeNode
from pilothouse.machinery.wire_facts import FieldFacts, Label, definition_name, facts_of, is_kind, is_list

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_APIEXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions."
_SCALARS = {
    "string": Scalar.STRING,
    "bool": Scalar.BOOL,
    "int32": Scalar.INT32,
    "int64": Scalar.INT64,
    "double": Scalar.FLOAT64,
    "bytes": Scalar.BYTES,
    f"{_META}.Time": Scalar.TIME,
    f"{_META}.MicroTime": Scalar.MICRO_TIME,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": Scalar.QUANTITY,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": Scalar.INT_OR_STRING,
}
_UNIONS = {
    "JSONSchemaPropsOrBool": Scalar.SCHEMA_OR_BOOL,
    "JSONSchemaPropsOrArray": Scalar.SCHEMA_OR_ARRAY,
    "JSONSchemaPropsOrStringArray": Scalar.SCHEMA_OR_STRINGS,
}
_ANY = frozenset(
    {
        "k8s.io.apimachinery.pkg.runtime.RawExtension",
        f"{_META}.FieldsV1",
        f"{_APIEXTENSIONS}v1.JSON",
        f"{_APIEXTENSIONS}v1beta1.JSON",
    }
)
_LEAVES = _ANY | _SCALARS.keys()
_WRAPPERS = {Label.REPEATED: (NodeKind.LIST, "[]"), Label.MAP: (NodeKind.MAP, "map[string]")}

_STRING = TypeNode(NodeKind.SCALAR, "string", Scalar.STRING)
_STRUCTS: dict[str, TypeNode] = {}
_SHARED: dict[tuple[str, str], TypeNode] = {}


def node_of(package: str, message: str) -> TypeNode:
    """Return the node of a struct. Raises KeyError for an unknown message."""
    full = f"{package}.{message}"
    node = _STRUCTS.get(full)
    return _build_struct(package, message) if node is None else node


def object_meta_type() -> TypeNode:
    """Return the node of ObjectMeta."""
    return node_of("k8s.io.apimachinery.pkg.apis.meta.v1", "ObjectMeta")


def _build_struct(package: str, message: str) -> TypeNode:
    name = definition_name(package, message)
    facts = facts_of(package, message)
    rules = field_rules().get(name, {})
    go_type = f"{package.rpartition('.')[2]}.{message}"
    map_type = rules.get("", {}).get("map_type", "")
    fields: dict[str, Field] = {}
    node = TypeNode(NodeKind.STRUCT, go_type, name=name, fields=fields, map_type=map_type)
    # Register the node before its fields: types may be recursive.
    _STRUCTS[f"{package}.{message}"] = node
    if is_kind(package, message):
        fields |= {key: Field(key, _STRING, omitempty=True, embedded=("TypeMeta",)) for key in ("kind", "apiVersion")}
    for fact in facts.values():
        fields |= {field.name: field for field in _fields(fact, rules)}
    return node


def _fields(fact: FieldFacts, rules: dict[str, dict[str, Any]]) -> Iterator[Field]:
    """Yield the field, or the fields of an inlined struct."""
    if not fact.inline:
        yield _field(fact, rules.get(fact.name, {}))
        return
    package, _, message = fact.type.rpartition(".")
    for inner in facts_of(package, message).values():
        for field in _fields(inner, rules):
            yield replace(field, embedded=(message, *field.embedded))


def _field(fact: FieldFacts, rules: dict[str, Any]) -> Field:
    strategy = rules.get("patch_strategy", "")
    return Field(
        name=fact.name,
        node=_field_node(fact, rules),
        pointer=fact.pointer,
        omitempty=fact.omitempty,
        omitzero=fact.omitzero,
        map_type=rules.get("map_type", ""),
        patch_strategy=tuple(strategy.split(",")) if strategy else (),
        patch_merge_key=rules.get("patch_merge_key", ""),
    )


def _field_node(fact: FieldFacts, rules: dict[str, Any]) -> TypeNode:
    if fact.label is Label.OPTIONAL:
        return _value_node(fact.type, fact.go_type)
    kind, prefix = _WRAPPERS[fact.label]
    element_type = fact.go_type.removeprefix(prefix) if fact.go_type.startswith(prefix) else ""
    return TypeNode(
        kind,
        fact.go_type,
        element=_value_node(fact.type, element_type),
        list_type=rules.get("list_type", ""),
        map_keys=tuple(rules.get("map_keys", ())),
        map_type=rules.get("map_type", ""),
    )


def _value_node(full: str, go_type: str) -> TypeNode:
    """Return the node of a protobuf type. `go_type` applies to leaves only; structs have their own name."""
    package, _, message = full.rpartition(".")
    if full in _LEAVES or _union_of(package, message) or is_list(package, message):
        node = _SHARED.get((full, go_type))
        if node is None:
            node = _SHARED[full, go_type] = _leaf(full, go_type)
        return node
    return node_of(package, message)


def _leaf(full: str, go_type: str) -> TypeNode:
    package, _, message = full.rpartition(".")
    go_type = go_type or (_SCALARS[full].value if full in _SCALARS else ".".join(full.split(".")[-2:]))
    if full in _ANY:
        return TypeNode(NodeKind.ANY, go_type)
    if full in _SCALARS:
        return TypeNode(NodeKind.SCALAR, go_type, _SCALARS[full])
    if union := _union_of(package, message):
        return TypeNode(NodeKind.SCALAR, go_type, union, element=node_of(package, "JSONSchemaProps"))
    return TypeNode(NodeKind.LIST, go_type, element=_STRING)


def _union_of(package: str, message: str) -> Scalar | None:
    return _UNIONS.get(message) if package.startswith(_APIEXTENSIONS) else None
