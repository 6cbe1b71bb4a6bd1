"""The first document of a YAML text as a tree of nodes, with libyaml's complaints in the words of its Go port."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum, auto
from typing import Any

from pilothouse.machinery.dataclass import dataclass


class YamlError(ValueError):
    """The text is no YAML, or no JSON can be made of it. The message is Go's."""


class NodeKind(Enum):
    SCALAR = auto()
    MAPPING = auto()
    SEQUENCE = auto()
    ALIAS = auto()


@dataclass(slots=True, eq=False)
class Node:
    """`children` of a mapping are keys and values in turn. `target` is what an alias stands for."""

    kind: NodeKind
    line: int
    value: str = ""
    tag: str = ""
    implicit: bool = False
    children: list[Node] = field(default_factory=list)
    target: Node | None = None


def compose(data: bytes) -> Node | None:
    """None for a text without a document. What comes after the first document is not looked at."""
    import yaml  # imported late, because few servers ever see YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = yaml.parse(data, Loader=loader)
        return _Composer(events).document()
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"yaml: {_where(error, yaml.scanner.ScannerError)}{error.problem}") from None
    except RecursionError:
        raise YamlError("yaml: exceeded max depth") from None


def _where(error: Any, scanner_error: type) -> str:
    """The Go port counts lines from zero, except in the scanner, and leaves line zero out."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, scanner_error)
    elif error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


class _Composer:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, Node] = {}

    def document(self) -> Node | None:
        for event in self._events:
            name = type(event).__name__
            if name == "DocumentStartEvent":
                node = self._node(next(self._events))
                # Only its end says that the document has nothing more in it.
                next(self._events)
                return node
            if name == "StreamEndEvent":
                break
        return None

    def _node(self, event: Any) -> Node:
        name = type(event).__name__
        line = event.start_mark.line
        if name == "AliasEvent":
            return self._alias(event.anchor, line)
        if name == "ScalarEvent":
            tag = _long_tag(event.tag)
            node = Node(NodeKind.SCALAR, line, value=event.value, tag=tag, implicit=event.implicit[0])
            return self._anchored(event, node)
        kind = NodeKind.MAPPING if name == "MappingStartEvent" else NodeKind.SEQUENCE
        node = self._anchored(event, Node(kind, line))
        for child in self._events:
            if type(child).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
                break
            node.children.append(self._node(child))
        return node

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, line: int) -> Node:
        target = self._anchors.get(anchor)
        if target is None:
            raise YamlError(f"yaml: unknown anchor '{anchor}' referenced")
        return Node(NodeKind.ALIAS, line, value=anchor, target=target)


def _long_tag(tag: str | None) -> str:
    return (tag or "").replace("tag:yaml.org,2002:", "!!")
