"""Whether Go's structs and the definitions say the same, field by field. What differs would make some clients see a
field that others do not: one that JSON keeps and protobuf drops, or that is served and not explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import Package, message_named
from tools.builtin_types.inlining import shown_fields
from tools.builtin_types.shape import REFERENCE, shape, shape_in
from tools.builtin_types.sources import Types, parsed

_JSON_ONLY = frozenset({"io.k8s.apimachinery.pkg.version.Info"})
"""Objects without a protobuf form."""
_WITHOUT_THEIR_KEYS = frozenset({"io.k8s.api.storagemigration.v1alpha1.StorageVersionMigrationList.items"})
"""Lists that upstream declares by keys that their items do not have."""
_TYPE_META = ("kind", "apiVersion")
_LIST_TYPES = frozenset({None, "atomic", "set", "map"})


class Disagreement(ValueError):
    """The sources contradict each other. The message has a line for each contradiction."""


def check_agreement(types: Types) -> None:
    """Raises Disagreement."""
    if found := list(_disagreements(types.definitions, parsed(types.structs))):
        raise Disagreement("\n".join(found))


def _disagreements(definitions: Mapping[str, Json], packages: Mapping[str, Package]) -> Iterator[str]:
    for name, schema in definitions.items():
        message = message_named(name)
        package = packages.get(message.package)
        if package is not None and message.message in package.lines:
            yield from _in_struct(name, schema, package, message.message, packages)
            yield from _in_references(name, schema, definitions)
        elif "properties" in schema and name not in _JSON_ONLY:
            yield f"{name} is published, and has no Go struct"
    for package in packages.values():
        for message_name in package.lines:
            yield from _in_numbers(package, message_name)


def _in_struct(
    name: str, schema: Json, package: Package, message: str, packages: Mapping[str, Package]
) -> Iterator[str]:
    published = {field: shape_in(child) for field, child in schema.get("properties", {}).items()}
    if message in package.kinds:
        published = {field: child for field, child in published.items() if field not in _TYPE_META}
    facts = {fact.name: shape(fact, packages) for fact in shown_fields(package, message, packages)}
    for field in sorted(published.keys() | facts.keys()):
        if published.get(field) != facts.get(field):
            yield f"{name}.{field} is {published.get(field)} as published, {facts.get(field)} in its Go struct"


def _in_references(name: str, schema: Json, definitions: Mapping[str, Json]) -> Iterator[str]:
    """Each leads somewhere, and the items of a list that is a map have its keys."""
    for field, child in schema.get("properties", {}).items():
        value = child.get("items") or child.get("additionalProperties") or child
        referred = value.get("$ref", "").removeprefix(REFERENCE)
        if referred and referred not in definitions:
            yield f"{name}.{field} refers to {referred}, which is not published"
            continue
        keys, list_type = child.get("x-kubernetes-list-map-keys", []), child.get("x-kubernetes-list-type")
        missing = set(keys) - set(definitions.get(referred, {}).get("properties", ()))
        if list_type not in _LIST_TYPES:
            yield f"{name}.{field} is a list of type {list_type}, which there is not"
        if f"{name}.{field}" in _WITHOUT_THEIR_KEYS:
            continue
        if missing or (list_type == "map" and not keys):
            yield f"{name}.{field} is a list by keys, and its items lack {', '.join(sorted(missing)) or 'any'}"


def _in_numbers(package: Package, message: str) -> Iterator[str]:
    taken: dict[int, str] = {}
    for fact in package.fields(message).values():
        if fact.number in taken:
            yield f"{package.name}.{message}: {taken[fact.number]} and {fact.name} are both number {fact.number}"
        taken[fact.number] = fact.name
