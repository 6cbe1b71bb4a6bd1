"""The line of a field in a YAML or JSON text, by the path that the server's messages use.

    Lines(b"spec:\\n  containers:\\n  - image: ''\\n").of("spec.containers[0].image")   → 3

Only texts with findings are read for their lines.
"""

from __future__ import annotations

import re

from pilothouse.machinery.codec.yaml_nodes import YamlError, events

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
