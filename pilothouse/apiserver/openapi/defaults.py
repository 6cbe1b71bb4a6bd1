"""Defaults of fields as version 3 shows them: declared ones, and Go's zero value where a field is always there.

Container.name=string  → ""        PodSpec.containers=[]Container → {} for each        Probe.port=*int32 → none
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.generated import declared_default, definitions
from pilothouse.machinery.wire_facts import FieldFacts, Label, definition_name, facts_of, is_list, message_named

_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
"""Has no protobuf form, and so no facts; all of it is strings."""


@dataclass(frozen=True, slots=True)
class Default:
    value: Any
    depth: int = 0
    """How many lists and maps stand around what it is the default of: 1 for the items of a list."""


def defaults_of(definition: str) -> dict[str, Default]:
    """By field; empty for a definition that is not a struct of the built-in kinds."""
    if definition == _VERSION_INFO:
        return {field: Default("") for field in definitions()[definition]["required"]}
    name = message_named(definition)
    try:
        return dict(_defaults(name.package, name.message, definition))
    except KeyError:
        return {}


def _defaults(package: str, message: str, definition: str) -> Iterator[tuple[str, Default]]:
    for fact in facts_of(package, message).values():
        if fact.inline:
            inner, _, name = fact.type.rpartition(".")
            yield from _defaults(inner, name, definition_name(inner, name))
            continue
        declared = declared_default(definition, fact.name)
        default = _zero(fact) if declared is None else Default(declared)
        if default is not None:
            yield fact.name, default


def _zero(fact: FieldFacts) -> Default | None:
    depth = int(fact.label is not Label.OPTIONAL)
    if is_list(*fact.type.rpartition(".")[::2]):
        return Default("", depth + 1)
    value = _zero_of(fact.type)
    if value is None or (fact.label is Label.OPTIONAL and fact.pointer):
        return None
    if fact.label is Label.OPTIONAL and fact.omitempty and fact.type in _ZERO:
        return None
    return Default(value, depth)


def _zero_of(type_name: str) -> Any:
    """None for types that are more than a scalar and no struct, such as times and quantities."""
    if type_name in _ZERO:
        return _ZERO[type_name]
    return {} if _is_struct(type_name) else None


@cache
def _is_struct(type_name: str) -> bool:
    package, _, message = type_name.rpartition(".")
    try:
        facts_of(package, message)
    except KeyError:
        return False
    return True
