"""The line on which a field of a YAML or JSON text stands, by the path that the server's messages name it with.

    Lines(b"spec:\\n  containers:\\n  - image: ''\\n").of("spec.containers[0].image")   → 3

Only texts in which something is wrong are looked at in this way: most never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_STEP = re.compile(r"\[(?P<index>\d+)\]|\[(?P<key>[^\]]*)\]|\.?(?P<name>[^.\[\]]+)")


class Lines:
    """The lines of one text, which is read once, when the first is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._read = False
        self._top: Any = None

    def of(self, path: str) -> int:
        """Return the line of the field, from 1; where the text does not have it, that of what is nearest around it."""
        node = self._root()
        line = 1 if node is None else node.start_mark.line + 1
        for step in _STEP.finditer(path):
            found = None if node is None else _child(node, step)
            if found is None:
                break
            node, line = found
        return int(line)

    def _root(self) -> Any:
        if not self._read:
            self._read, self._top = True, _composed(self._data)
        return self._top


def line_of_syntax_error(data: bytes) -> int:
    """Return the line where reading the text ends; 1 where it can be read."""
    import yaml

    try:
        _compose(data)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return int(mark.line) + 1 if mark else 1
    except yaml.YAMLError:
        pass
    return 1


def _composed(data: bytes) -> Any:
    """Return the tree of the text; None where it cannot be read, or is empty."""
    import yaml

    try:
        return _compose(data)
    except (yaml.YAMLError, RecursionError):
        return None


def _compose(data: bytes) -> Any:
    import yaml

    return yaml.compose(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _child(node: Any, step: re.Match[str]) -> tuple[Any, int] | None:
    """Return what one step leads to, and the line of its key, or of its beginning in a list."""
    if node.id == "sequence":
        return _item(node, step)
    name = step["name"] if step["name"] is not None else step["key"] or step["index"]
    for key, value in _members(node):
        if key.value == name:
            return value, key.start_mark.line + 1
    return None


def _item(node: Any, step: re.Match[str]) -> tuple[Any, int] | None:
    if step["index"] is None or int(step["index"]) >= len(node.value):
        return None
    item = node.value[int(step["index"])]
    return item, item.start_mark.line + 1


def _members(node: Any) -> Iterator[tuple[Any, Any]]:
    if node.id == "mapping":
        yield from node.value
