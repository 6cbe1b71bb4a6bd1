"""Merges the overlay into the types: each added field goes into its Go struct, and from there into its definition.

What the definition says of the type is made of the struct, so that the two cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import SCALARS, Package, message_named
from tools.builtin_types.clashes import clashes
from tools.builtin_types.inlining import shown_by
from tools.builtin_types.overlay import AddedField, Overlay, OverlayError
from tools.builtin_types.rules import RULES
from tools.builtin_types.shape import shape
from tools.builtin_types.sources import Types, parsed


def merged(types: Types, overlay: Overlay) -> Types:
    """The types with all that the overlay adds; what is given is not changed. Raises OverlayError."""
    if wrong := list(clashes(types, overlay)):
        raise OverlayError("\n".join(wrong))
    structs = merged_structs(types.structs, overlay)
    definitions = _merged_definitions(types.definitions, overlay, parsed(structs))
    return Types(definitions, structs, {**types.defaults, **overlay.defaults})


def merged_structs(structs: Mapping[str, str], overlay: Overlay) -> dict[str, str]:
    """The Go structs alone, with the structs and fields that the overlay adds."""
    out = dict(structs)
    for struct in overlay.structs:
        name = message_named(struct.name)
        out[name.package] += f"{name.message}:\n"
    for field in overlay.fields:
        name = message_named(field.of)
        line = re.compile(rf"^{re.escape(name.message)}!?:.*$", re.MULTILINE)
        out[name.package] = line.sub(rf"\g<0> {_token(field)}", out[name.package])
    return out


def _token(field: AddedField) -> str:
    """The field in the notation of Go structs."""
    label = field.type[:2] if field.type.startswith(("[]", "{}")) else ""
    of = field.type.removeprefix(label)
    flags = "*" * field.pointer + "?" * (not field.required)
    named = f"@{field.go_type}" if field.go_type else ""
    return f"{field.name}={field.number}{flags}:{label}{of if of in SCALARS else message_named(of)}{named}"


def _merged_definitions(
    definitions: Mapping[str, Json], overlay: Overlay, packages: Mapping[str, Package]
) -> dict[str, Json]:
    out = dict(definitions)
    for struct in overlay.structs:
        out[struct.name] = _sorted({"description": struct.description, "type": "object"} | _rules(struct))
    shown = shown_by(packages) if overlay.fields else {}
    for field in overlay.fields:
        name = message_named(field.of)
        fact = packages[name.package].fields(name.message)[field.name]
        schema = _sorted({"description": field.description} | shape(fact, packages) | _rules(field))
        out |= {place: _with_property(out[place], field, schema) for place in shown[name] if place in out}
    return out


def _with_property(definition: Json, field: AddedField, schema: Json) -> Json:
    properties = _sorted(definition.get("properties", {}) | {field.name: schema})
    required = definition.get("required", []) + [field.name] * field.required
    return _sorted(definition | {"properties": properties} | ({"required": required} if required else {}))


def _rules(row: object) -> Json:
    return {long: value for long, short in RULES.items() if (value := getattr(row, short, None))}


def _sorted(schema: Json) -> Json:
    """In the order in which upstream publishes."""
    return dict(sorted(schema.items()))
