"""The documents of files and folders, each with its first line. Helm charts and kustomizations are refused with the
command that renders them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pilothouse.cli.offline.findings import Checked, Finding, Severity
from pilothouse.cli.offline.lines import Lines
from pilothouse.machinery.codec.yaml import is_content, split_documents
from pilothouse.machinery.dataclass import dataclass

STDIN = "-"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHARTS = ("Chart.yaml", "Chart.yml")
_RENDER_FIRST = (
    (_CHARTS, "a Helm chart", "helm template {folder} | pilothouse validate -"),
    (_KUSTOMIZATIONS, "a kustomization", "kubectl kustomize {folder} | pilothouse validate -"),
)


class NothingToRead(Exception):
    """A path of the command line cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document of a file. `line` is the first line of its data."""

    file: str
    line: int
    data: bytes
    lines: Lines

    @classmethod
    def of(cls, file: str, data: bytes = b"", *, line: int = 1) -> Document:
        return cls(file, line, data, Lines(data))

    def line_of(self, path: str) -> int:
        """Return the line of a field in the file."""
        return self.line + self.lines.of(path) - 1

    @property
    def first_line(self) -> int:
        """The line of its first content."""
        for at, line in enumerate(self.data.splitlines()):
            if is_content(line):
                return self.line + at
        return self.line

    def refusal(self, message: str, *, line: int = 1, hint: str = "") -> Checked:
        """Return the document as checked, with one error at a line of its own data."""
        at = self.line + line - 1
        found = Finding(Severity.ERROR, self.file, at, message, hint=hint)
        return Checked(self.file, at, "", (found,))


def read_documents(paths: Iterable[str]) -> Iterator[Document | Checked]:
    """Yield the documents in the order of the paths; folders are searched recursively, by name.

    Raises NothingToRead for a missing path.
    """
    for path in paths:
        if path == STDIN:
            yield from _documents("<stdin>", sys.stdin.buffer.read())
        elif Path(path).is_dir():
            yield from _in_folder(Path(path))
        else:
            yield from _in_file(Path(path))


def _in_folder(folder: Path) -> Iterator[Document | Checked]:
    if refused := _must_be_rendered(folder):
        yield refused
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            # Links may lead back up, and hidden folders hold no manifests.
            yield from () if path.is_symlink() or path.name.startswith(".") else _in_folder(path)
        elif path.suffix in _SUFFIXES and path.is_file():  # a pipe or a device may have no end
            yield from _in_file(path)


def _must_be_rendered(folder: Path) -> Checked | None:
    for names, what, command in _RENDER_FIRST:
        if found := next((folder / name for name in names if (folder / name).is_file()), None):
            hint = f"render it first: {command.format(folder=folder)}"
            return Document.of(str(found)).refusal(f"{folder} is {what}, not manifests", hint=hint)
    return None


def _in_file(path: Path) -> Iterator[Document | Checked]:
    if path.name in (*_CHARTS, *_KUSTOMIZATIONS) and (refused := _must_be_rendered(path.parent)):
        yield refused
        return
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NothingToRead(f"{path}: {(error.strerror or str(error)).lower()}") from None
    yield from _documents(str(path), data)


def _documents(file: str, data: bytes) -> Iterator[Document]:
    for line, part in split_documents(data):
        yield Document.of(file, part, line=line)
