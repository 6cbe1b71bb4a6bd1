"""An OpenAPI v2 document taken apart: the sections that merging works on, and the references between them."""

from __future__ import annotations

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


class MalformedSpec(Exception):
    """The document is no OpenAPI v2 document."""


@dataclass(frozen=True, slots=True)
class SpecReference:
    section: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """Nobody changes the values in the sections: documents share them. `head` is everything else."""

    head: Json = field(default_factory=dict)
    paths: Section = field(default_factory=dict)
    definitions: Section = field(default_factory=dict)
    parameters: Section = field(default_factory=dict)

    @classmethod
    def parse(cls, document: bytes) -> Spec:
        """Raises MalformedSpec."""
        try:
            whole = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            raise MalformedSpec(f"not JSON: {error}") from None
        if not isinstance(whole, dict):
            raise MalformedSpec("not a JSON object")
        head = {key: value for key, value in whole.items() if key not in _SECTIONS}
        return cls(head, *(_section(whole, name) for name in _SECTIONS))

    def encode(self) -> bytes:
        """With its names sorted, so that the same content makes the same bytes."""
        return orjson.dumps(self.document())

    def document(self) -> Json:
        sections = {name: dict(sorted(getattr(self, name).items())) for name in _SECTIONS}
        return self.head | {name: section for name, section in sections.items() if section or name == "paths"}

    def used(self) -> set[SpecReference]:
        """Return what the paths refer to, directly or through others."""
        found: set[SpecReference] = set()
        waiting = references(self.paths)
        while waiting:
            reference = waiting.pop()
            found.add(reference)
            target = self._section(reference.section).get(reference.name)
            waiting |= references(target) - found if target is not None else set()
        return found

    def filtered(self, keep: Callable[[str], bool]) -> Spec:
        """Only the paths to be kept, without the definitions and parameters that only the others used."""
        before = self.used()
        rest = replace(self, paths={path: item for path, item in self.paths.items() if keep(path)})
        unused = before - rest.used()
        return replace(
            rest,
            definitions=_without(unused, DEFINITIONS, rest.definitions),
            parameters=_without(unused, PARAMETERS, rest.parameters),
        )

    def renamed(self, definitions: Renames, parameters: Renames) -> Spec:
        """With other names, in the sections and wherever they are referred to."""
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
    """On the text, which is some twenty times as fast as walking the tree."""

    def rename(found: re.Match[bytes]) -> bytes:
        kind, name = found[1].decode(), found[2].decode()
        return b'"$ref":"#/%s/%s"' % (kind.encode(), renames[kind].get(name, name).encode())

    renamed: Section = orjson.loads(_REFERENCE.sub(rename, orjson.dumps(section)))
    return renamed
