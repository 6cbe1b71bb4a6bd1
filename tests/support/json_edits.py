"""Edits between two JSON documents: what one recording of a server adds to another, without the parts they share.

An edit is a list: [path, "set", value], [path, "remove"], or [path, "splice", start, removed, items] of a list.
`edited(old, edits_between(old, new)) == new` for every pair of documents.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

Path = tuple[str | int, ...]
Edit = list[Any]


def edits_between(old: Any, new: Any, path: Path = ()) -> Iterator[Edit]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - new.keys():
            yield [[*path, key], "remove"]
        for key, value in new.items():
            if key in old:
                yield from edits_between(old[key], value, (*path, key))
            else:
                yield [[*path, key], "set", value]
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_edits(old, new, path)
    elif type(old) is not type(new) or old != new:
        yield [list(path), "set", new]


def _list_edits(old: list[Any], new: list[Any], path: Path) -> Iterator[Edit]:
    """Yield the splices from the last to the first, so that no splice moves the place of another."""
    if len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from edits_between(one, other, (*path, at))
        return
    before = [json.dumps(item, sort_keys=True) for item in old]
    after = [json.dumps(item, sort_keys=True) for item in new]
    for tag, start, end, first, last in reversed(SequenceMatcher(None, before, after, autojunk=False).get_opcodes()):
        if tag == "replace" and end - start == last - first:
            yield from _list_edits_in_place(old[start:end], new[first:last], path, start)
        elif tag != "equal":
            yield [list(path), "splice", start, end - start, new[first:last]]


def _list_edits_in_place(old: list[Any], new: list[Any], path: Path, start: int) -> Iterator[Edit]:
    for at, (one, other) in enumerate(zip(old, new, strict=True), start):
        yield from edits_between(one, other, (*path, at))


def edited(document: Any, edits: Iterable[Edit]) -> Any:
    """Return a copy of the document after the edits. Raises KeyError and IndexError for edits of another document."""
    root = [copy.deepcopy(document)]
    for path, action, *rest in edits:
        parent, key = _at(root, [0, *path[:-1]] if path else []), path[-1] if path else 0
        if action == "remove":
            del parent[key]
        elif action == "set":
            parent[key] = rest[0]
        else:
            start, removed, items = rest
            parent[key][start : start + removed] = items
    return root[0]


def _at(value: Any, path: list[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value
