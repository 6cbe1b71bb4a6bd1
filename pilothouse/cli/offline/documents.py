"""YAML documents of files and folders with the line of each field, and findings with their positions.

Helm charts and kustomizations are rejected with the command that renders them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from pilothouse.machinery.codec.yaml import is_content, split_documents
from pilothouse.machinery.codec.yaml_nodes import YamlError, events
from pilothouse.machinery.dataclass import dataclass


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one object, or about a whole file if `subject` is empty. Lines count from 1."""

    severity: Severity
    file: str
    line: int
    message: str
    subject: str = ""
    field: str = ""
    hint: str = ""
    """Next step; empty if the message already names it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked object or case, with its findings."""

    file: str
    line: int
    subject: str
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All checks, in file order. `title` names the command."""

    title: str
    checked: tuple[Checked, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for checked in self.checked for finding in checked.findings]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def passed(self) -> bool:
        return all(checked.passed for checked in self.checked)


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
        """Line of the first content."""
        for at, line in enumerate(self.data.splitlines()):
            if is_content(line):
                return self.line + at
        return self.line

    def refusal(self, message: str, *, line: int = 1, hint: str = "") -> Checked:
        """Return a failed check with one error. `line` counts within the document."""
        at = self.line + line - 1
        finding = Finding(Severity.ERROR, self.file, at, message, hint=hint)
        return Checked(self.file, at, "", (finding,))


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
    if refusal := _must_be_rendered(folder):
        yield refusal
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            # Links may lead back up, and hidden folders hold no manifests.
            yield from () if path.is_symlink() or path.name.startswith(".") else _in_folder(path)
        elif path.suffix in _SUFFIXES and path.is_file():  # a pipe or a device may have no end
            yield from _in_file(path)


def _must_be_rendered(folder: Path) -> Checked | None:
    for names, description, command in _RENDER_FIRST:
        if file := next((folder / name for name in names if (folder / name).is_file()), None):
            hint = f"render it first: {command.format(folder=folder)}"
            return Document.of(str(file)).refusal(f"{folder} is {description}, not manifests", hint=hint)
    return None


def _in_file(path: Path) -> Iterator[Document | Checked]:
    if path.name in (*_CHARTS, *_KUSTOMIZATIONS) and (refusal := _must_be_rendered(path.parent)):
        yield refusal
        return
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NothingToRead(f"{path}: {(error.strerror or str(error)).lower()}") from None
    yield from _documents(str(path), data)


def _documents(file: str, data: bytes) -> Iterator[Document]:
    for line, part in split_documents(data):
        yield Document.of(file, part, line=line)


_STEP = re.compile(r"\[(?P<index>\d+)\]|\[(?P<key>[^\]]*)\]|\.?(?P<name>[^.\[\]]+)")


class LineNode:
    """A value of the text: its first line, the items of a sequence, the members of a mapping by key."""

    __slots__ = ("items", "key_lines", "line", "members", "text")

    def __init__(self, line: int, text: str = "") -> None:
        self.line, self.text = line, text
        self.items: list[LineNode] = []
        self.members: dict[str, LineNode] = {}
        self.key_lines: dict[str, int] = {}

    def child(self, step: re.Match[str]) -> tuple[LineNode, int] | None:
        """Return the child and the line of its key or item; None if there is no such child."""
        if self.items:
            at = step["index"]
            return (self.items[int(at)], self.items[int(at)].line) if at and int(at) < len(self.items) else None
        name = step["name"] if step["name"] is not None else step["key"] or step["index"]
        return (self.members[name], self.key_lines[name]) if name in self.members else None


class Lines:
    """The lines of one text. The text is read when the first line is requested."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._read = False
        self._top: LineNode | None = None

    def of(self, path: str) -> int:
        """Return the line of the field, from 1; of the nearest parent if the text does not have the field."""
        if not self._read:
            self._read, self._top = True, _tree(self._data)
        node = self._top
        line = 1 if node is None else node.line
        for step in _STEP.finditer(path):
            found = None if node is None else node.child(step)
            if found is None:
                break
            node, line = found
        return line


def _tree(data: bytes) -> LineNode | None:
    """Return the tree of the first document; None if the text is empty or cannot be read."""
    stack: list[tuple[LineNode, list[LineNode]]] = [(LineNode(1), [])]  # open collections with their children so far
    try:
        for event in events(data):
            kind = type(event).__name__
            if kind == "DocumentEndEvent":
                break
            if kind in ("ScalarEvent", "AliasEvent"):
                stack[-1][1].append(LineNode(event.start_mark.line + 1, getattr(event, "value", "")))
            elif kind in ("SequenceStartEvent", "MappingStartEvent"):
                stack.append((LineNode(event.start_mark.line + 1), []))
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                node, children = stack.pop()
                _close(node, children, is_mapping=kind == "MappingEndEvent")
                stack[-1][1].append(node)
    except YamlError:
        return None
    return stack[0][1][0] if stack[0][1] else None


def _close(node: LineNode, children: list[LineNode], *, is_mapping: bool) -> None:
    if not is_mapping:
        node.items = children
        return
    pairs = iter(children)
    for key, value in zip(pairs, pairs, strict=True):
        if key.text not in node.members:
            node.members[key.text], node.key_lines[key.text] = value, key.line
