"""A parsed OpenAPI v2 document: its sections, the references between them, and the merge of two documents.

Existing paths win. A definition or parameter with a taken name is renamed in the later document, to the first of
NAME_v2, NAME_v3, … that is free or has equal content:

    Thing {a} + Thing {b} + Thing {b}  →  Thing {a}, Thing_v2 {b}
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

DEFINITIONS, PARAMETERS = "definitions", "parameters"
_SECTIONS = ("paths", DEFINITIONS, PARAMETERS)
_REFERENCE = re.compile(rb'"\$ref":"#/(definitions|parameters)/([^"]+)"')

Section: TypeAlias = dict[str, Json]
Renames: TypeAlias = dict[str, str]

_KINDS = "x-kubernetes-group-version-kind"
Same: TypeAlias = Callable[[Json, Json], bool]


class MalformedSpec(Exception):
    """The document is not an OpenAPI v2 document."""


@dataclass(frozen=True, slots=True)
class SpecReference:
    section: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """Sections are shared between documents and must not be modified. `head`: the remaining fields."""

    head: Json = field(default_factory=dict)
    paths: Section = field(default_factory=dict)
    definitions: Section = field(default_factory=dict)
    parameters: Section = field(default_factory=dict)

    @classmethod
    def parse(cls, document: bytes) -> Spec:
        """Parse a document. Raises MalformedSpec."""
        try:
            whole = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            raise MalformedSpec(f"not JSON: {error}") from None
        if not isinstance(whole, dict):
            raise MalformedSpec("not a JSON object")
        head = {key: value for key, value in whole.items() if key not in _SECTIONS}
        return cls(head, *(_section(whole, name) for name in _SECTIONS))

    def encode(self) -> bytes:
        """Encode with sorted names, so equal content gives equal bytes."""
        return orjson.dumps(self.document())

    def document(self) -> Json:
        sections = {name: dict(sorted(getattr(self, name).items())) for name in _SECTIONS}
        return self.head | {name: section for name, section in sections.items() if section or name == "paths"}

    def used(self) -> set[SpecReference]:
        """Return the definitions and parameters referenced by paths, directly or indirectly."""
        found: set[SpecReference] = set()
        waiting = references(self.paths)
        while waiting:
            reference = waiting.pop()
            found.add(reference)
            target = self._section(reference.section).get(reference.name)
            waiting |= references(target) - found if target is not None else set()
        return found

    def filtered(self, keep: Callable[[str], bool]) -> Spec:
        """Keep the matching paths, and drop definitions and parameters used by removed paths only."""
        before = self.used()
        rest = replace(self, paths={path: item for path, item in self.paths.items() if keep(path)})
        unused = before - rest.used()
        return replace(
            rest,
            definitions=_without(unused, DEFINITIONS, rest.definitions),
            parameters=_without(unused, PARAMETERS, rest.parameters),
        )

    def renamed(self, definitions: Renames, parameters: Renames) -> Spec:
        """Rename definitions and parameters, including all references."""
        if not definitions and not parameters:
            return self
        renames = {DEFINITIONS: definitions, PARAMETERS: parameters}
        return replace(
            self,
            paths=_with_references(self.paths, renames),
            definitions=_with_names(_with_references(self.definitions, renames), definitions),
            parameters=_with_names(_with_references(self.parameters, renames), parameters),
        )

    def _section(self, name: str) -> Section:
        return self.definitions if name == DEFINITIONS else self.parameters


def references(value: Any) -> set[SpecReference]:
    return {SpecReference(section.decode(), name.decode()) for section, name in _REFERENCE.findall(orjson.dumps(value))}


def _section(whole: Json, name: str) -> Section:
    section = whole.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict) or not all(isinstance(value, dict) for value in section.values()):
        raise MalformedSpec(f"{name} is no map of objects")
    return section


def _without(unused: Iterable[SpecReference], section: str, values: Section) -> Section:
    names = {reference.name for reference in unused if reference.section == section}
    return {name: value for name, value in values.items() if name not in names}


def _with_names(section: Section, renames: Renames) -> Section:
    return {renames.get(name, name): value for name, value in section.items()}


def _with_references(section: Section, renames: dict[str, Renames]) -> Section:
    """Rename references in the encoded text, about twenty times as fast as a walk of the tree."""

    def rename(match: re.Match[bytes]) -> bytes:
        kind, name = match[1].decode(), match[2].decode()
        return b'"$ref":"#/%s/%s"' % (kind.encode(), renames[kind].get(name, name).encode())

    renamed: Section = orjson.loads(_REFERENCE.sub(rename, orjson.dumps(section)))
    return renamed


def merge(into: Spec, spec: Spec) -> Spec:
    """Return the merged document with the head of the first."""
    new = spec
    if not into.paths.keys().isdisjoint(spec.paths):
        new = spec.filtered(lambda path: path not in into.paths)
    if not new.paths:
        return into
    new = new.renamed(
        _renames(into.definitions, new.definitions, _is_same_definition),
        _renames(into.parameters, new.parameters, Json.__eq__),
    )
    return replace(
        into,
        paths=into.paths | new.paths,
        definitions=_with_kinds_of_both(into.definitions, new.definitions),
        parameters=new.parameters | into.parameters,
    )


def _renames(taken: Section, new: Section, same: Same) -> Renames:
    renames: Renames = {}
    for name in sorted(new):
        if name in taken and not same(taken[name], new[name]):
            renames[name] = _free_name(name, taken, new, same)
    return renames


def _free_name(name: str, taken: Section, new: Section, same: Same) -> str:
    for number in itertools.count(2):
        candidate = f"{name}_v{number}"
        if candidate in taken and same(taken[candidate], new[name]) and candidate not in new:
            return candidate
        if candidate not in taken and candidate not in new:
            return candidate
    raise AssertionError


def _is_same_definition(first: Json, second: Json) -> bool:
    """Compare two definitions, ignoring their kinds."""
    return _without_kinds(first) == _without_kinds(second)


def _without_kinds(definition: Json) -> Json:
    return {key: value for key, value in definition.items() if key != _KINDS}


def _with_kinds_of_both(taken: Section, new: Section) -> Section:
    """Merge the sections; definitions present in both get the kinds of both."""
    out = taken | {name: definition for name, definition in new.items() if name not in taken}
    for name in new.keys() & taken.keys():
        kinds = taken[name].get(_KINDS) or []
        more = [kind for kind in new[name].get(_KINDS) or [] if kind not in kinds]
        if more:
            out[name] = {**taken[name], _KINDS: sorted([*kinds, *more], key=_kind_order)}
    return out


def _kind_order(kind: Json) -> tuple[str, str, str]:
    return str(kind.get("group", "")), str(kind.get("version", "")), str(kind.get("kind", ""))
