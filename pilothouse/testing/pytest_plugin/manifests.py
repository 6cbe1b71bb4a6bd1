"""Objects from files and folders, as people give them to kubectl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.testing.pytest_plugin.settings import Source

_SUFFIXES = (".yaml", ".yml", ".json")


class BadManifest(ValueError):
    """What was given is no object, or the server does not take it. The message says which and why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and where it is from."""

    obj: Json
    origin: str

    @property
    def name(self) -> str:
        return f"{self.obj['kind']} {self.obj['metadata'].get('name', '')!r} (from {self.origin})"


def read_manifests(sources: Iterable[Source]) -> Iterator[Manifest]:
    """Yield every object: the documents of a file, the files of a folder by their names, the items of a List.

    Raises BadManifest, OSError.
    """
    for source in sources:
        if not isinstance(source, Path):
            yield from _objects(dict(source), "the test")
            continue
        files = [each for each in sorted(source.iterdir()) if each.suffix in _SUFFIXES] if source.is_dir() else [source]
        if not files:
            raise BadManifest(f"{source} has no {', '.join(_SUFFIXES)} file")
        for file in files:
            for document in _documents(file):
                yield from _objects(document, str(file))


def _documents(file: Path) -> Iterator[Any]:
    try:
        for _, document in split_documents(file.read_bytes()):
            if (value := parse_yaml(document).value) is not None:
                yield value
    except YamlError as error:
        raise BadManifest(f"{file} is not valid YAML: {error}") from None


def _objects(document: Any, origin: str) -> Iterator[Manifest]:
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise BadManifest(f"{origin} has something that is no object: it needs apiVersion and kind")
    if document["kind"] == "List":
        for item in document.get("items") or ():
            yield from _objects(item, origin)
    else:
        yield Manifest({"metadata": {}, **document}, origin)
