"""Server-side apply types of a custom resource: lists and maps that merge by key, and atomic values.

Below a schema that preserves unknown fields, objects may have fields without a type.
"""

from __future__ import annotations

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.apply.atoms import DEDUCED, UNTYPED_ATOMIC, Atom, ListAtom, MapAtom, Scalar
from pilothouse.machinery.apply.schema_atoms import atom_of
from pilothouse.machinery.schema.tree import object_meta_type

_SCALARS = {"integer": Scalar.NUMERIC, "number": Scalar.NUMERIC, "boolean": Scalar.BOOLEAN}
_TEXT = Atom(Scalar.STRING)


def object_atom(schema: Structural | None, *, preserve_unknown_fields: bool) -> Atom:
    """Return the atom of a resource; DEDUCED without a schema."""
    if schema is None:
        return DEDUCED
    keeps = preserve_unknown_fields or schema.preserves_unknown_fields
    return Atom(map=_map(schema, keeps=keeps, resource=True))


def _atom(schema: Structural, *, keeps: bool) -> Atom:
    keeps = keeps or schema.preserves_unknown_fields
    if schema.int_or_string or not schema.type:
        return Atom(Scalar.UNTYPED, list=_list(schema, keeps=keeps), map=_map(schema, keeps=keeps))
    if schema.type == "object":
        return Atom(map=_map(schema, keeps=keeps))
    if schema.type == "array":
        return Atom(list=_list(schema, keeps=keeps))
    if schema.type == "string":
        return _TEXT if (schema.source.get("format") or "") in ("", "byte") else Atom(Scalar.UNTYPED)
    return Atom(_SCALARS.get(schema.type, Scalar.UNTYPED))


def _list(schema: Structural, *, keeps: bool) -> ListAtom:
    element = _atom(schema.items, keeps=keeps) if schema.items is not None else UNTYPED_ATOMIC
    if schema.list_type != "map" or schema.items is None:
        return ListAtom(element, associative=schema.list_type == "set")
    properties = schema.items.properties
    defaults = {key: properties[key].default for key in schema.map_keys if key in properties}
    known = {key: default for key, default in defaults.items() if default is not None}
    return ListAtom(element, associative=True, keys=schema.map_keys, defaults=known)


def _map(schema: Structural, *, keeps: bool, resource: bool = False) -> MapAtom:
    fields = {name: _atom(child, keeps=keeps) for name, child in schema.properties.items()}
    if resource or schema.embedded_resource:
        fields |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": atom_of(object_meta_type())}
    element = _atom(schema.additional, keeps=keeps) if schema.additional is not None else None
    if element is None and (schema.allows_additional or keeps or not fields):
        element = DEDUCED
    return MapAtom(fields, element, atomic=schema.map_type == "atomic")
