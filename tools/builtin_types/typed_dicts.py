"""Typed built-in kinds for operators: a module per group version in `pilothouse/operator/types/`, with its stub.

    apps_v1.py     Deployment at run time: a marker that knows apiVersion, kind and plural, created on first access
    apps_v1.pyi    Deployment for type checkers: a TypedDict, like each type of its fields

The source is the OpenAPI definitions of the installed types. A stub has the first sentence of each kind's description.
Lists, and types that are not used by any kind, are left out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.machinery.objects import Json
from tools.builtin_types.shape import REFERENCE

_GVK = "x-kubernetes-group-version-kind"
_SCALARS = {"string": "str", "boolean": "bool", "integer": "int", "number": "float"}
_OTHER_FORMS = {"int-or-string": "int | str"}
_BUILTINS = frozenset({"bool", "dict", "float", "int", "list", "str"})
"""Names that a class body must not redefine, because the annotations after them use them."""
_PLURALS = {"Endpoints": "endpoints"}


@dataclass
class _Module:
    api_version: str = ""
    kinds: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    stubs: dict[str, str] = field(default_factory=dict)


def write_typed_dicts(definitions: Mapping[str, Json], folder: Path) -> None:
    """Replace the modules of all group versions in `folder`. Other files in it stay."""
    for old in folder.glob("*_v*.py*"):
        old.unlink()
    for name, module in _modules(definitions).items():
        (folder / f"{name}.py").write_text(_source(module), encoding="utf-8")
        (folder / f"{name}.pyi").write_text(_stub(module), encoding="utf-8")


def plural_of(kind: str) -> str:
    """Return the resource of a built-in kind: `networkpolicies`, `ingresses`, `endpoints`."""
    if kind in _PLURALS:
        return _PLURALS[kind]
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _modules(definitions: Mapping[str, Json]) -> dict[str, _Module]:
    kinds = {name: gvk for name, schema in definitions.items() if (gvk := _kind_of(schema))}
    modules: dict[str, _Module] = {}
    for name in sorted(_reachable(definitions, kinds)):
        module_name, _, type_name = _place(name).partition(".")
        module = modules.setdefault(module_name, _Module())
        gvk = kinds.get(name)
        (module.parts if gvk is None else module.kinds).append(type_name)
        module.api_version = module.api_version if gvk is None else _api_version(gvk)
        module.stubs[type_name] = _typed_dict(type_name, definitions, name, module_name, gvk)
        module.uses |= {place.partition(".")[0] for place in map(_place, _references(definitions, name))} - {
            module_name
        }
    return modules


def _kind_of(schema: Json) -> Json | None:
    """Return the group, version and kind of an object's definition; lists and kinds of every group have none."""
    match schema.get(_GVK):
        case [gvk] if "items" not in schema.get("properties", ()) and "metadata" in schema.get("properties", ()):
            return dict(gvk)
    return None


def _api_version(gvk: Json) -> str:
    return "/".join(filter(None, (gvk["group"], gvk["version"])))


def _reachable(definitions: Mapping[str, Json], kinds: Mapping[str, Json]) -> set[str]:
    found: set[str] = set()
    waiting = [*kinds]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_references(definitions, name))
    return found


def _references(definitions: Mapping[str, Json], name: str) -> Iterator[str]:
    """Yield the definitions of the fields' types that become TypedDicts."""
    for schema in definitions[name].get("properties", {}).values():
        inner = schema
        while deeper := inner.get("items") or inner.get("additionalProperties"):
            inner = deeper
        reference = inner.get("$ref", "").removeprefix(REFERENCE)
        if reference and "properties" in definitions[reference]:
            yield reference


def _place(definition: str) -> str:
    """Module and class of a definition: `io.k8s.api.apps.v1.Deployment` → `apps_v1.Deployment`."""
    group, version, name = definition.split(".")[-3:]
    return f"{group}_{version}.{name}"


def _typed_dict(type_name: str, definitions: Mapping[str, Json], name: str, module: str, gvk: Json | None) -> str:
    schema = definitions[name]
    fields = {key: _annotation(child, definitions, module) for key, child in schema["properties"].items()}
    if gvk is not None:
        fields |= {"apiVersion": f'Literal["{_api_version(gvk)}"]', "kind": f'Literal["{gvk["kind"]}"]'}
    if any(not key.isidentifier() or keyword.iskeyword(key) or key in _BUILTINS for key in fields):
        rows = ", ".join(f'"{key}": {annotation}' for key, annotation in fields.items())
        return f'{type_name} = TypedDict("{type_name}", {{{rows}}}, total=False)\n'
    summary = [f'"""{_summary(schema)}"""'] if gvk is not None else []
    lines = [*summary, *(f"{key}: {annotation}" for key, annotation in fields.items())]
    return f"class {type_name}(TypedDict, total=False):\n" + "".join(f"    {line}\n" for line in lines)


def _summary(schema: Json) -> str:
    """Return the first sentence of the description."""
    text = " ".join(schema.get("description", "").split()).replace("\\", "").replace('"', "'")
    return re.split(r"(?<=[a-z)])\.\s", text, maxsplit=1)[0].rstrip(".") + "."


def _annotation(schema: Json, definitions: Mapping[str, Json], module: str) -> str:
    if reference := schema.get("$ref", "").removeprefix(REFERENCE):
        if "properties" in definitions[reference]:
            return _place(reference).removeprefix(f"{module}.")
        return _annotation(definitions[reference], definitions, module)
    if schema.get("format") in _OTHER_FORMS:
        return _OTHER_FORMS[schema["format"]]
    match schema.get("type"):
        case "array":
            return f"list[{_annotation(schema['items'], definitions, module)}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {_annotation(inner, definitions, module) if inner else 'Any'}]"
        case scalar:
            return _SCALARS.get(str(scalar), "Any")


def _source(module: _Module) -> str:
    kinds = {kind: plural_of(kind) for kind in module.kinds}
    return (
        "from pilothouse.operator.types import names\n\n"
        f"__getattr__, __dir__ = names(__name__, {module.api_version!r}, {kinds!r}, {' '.join(module.parts)!r})\n"
    )


def _stub(module: _Module) -> str:
    text = "\n".join(module.stubs.values())
    typing = ", ".join(name for name in ("Any", "Literal", "TypedDict") if re.search(rf"\b{name}\b", text))
    uses = f"from pilothouse.operator.types import {', '.join(sorted(module.uses))}\n" if module.uses else ""
    return f"from typing import {typing}\n\n{uses}\n{text}"
