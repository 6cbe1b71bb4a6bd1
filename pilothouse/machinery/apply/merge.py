"""Merge of an applied configuration into an object: nothing is removed, and the configuration wins.

List items are in the configuration's order. Items missing in the configuration stay before their previous successor.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pilothouse.machinery.apply.atoms import Atom, ListAtom, MapAtom
from pilothouse.machinery.checkpoints import checkpoint


class _Absent:
    """Sentinel for a missing value, as opposed to null."""


_ABSENT = _Absent()


def merge(atom: Atom, live: Any, config: Any) -> Any:
    """Return the merged value, which may share parts with both arguments. Raises Unkeyed."""
    merged = _merge(atom, live, config)
    return None if merged is _ABSENT else merged


def _merge(atom: Atom, live: Any, config: Any) -> Any:
    checkpoint()
    form = atom.for_value(live if config is _ABSENT else config)
    if form.map is not None:
        return _merge_maps(form.map, live, config)
    if form.list is not None and form.scalar is None:
        left = live if isinstance(live, list) else []
        right = config if isinstance(config, list) else []
        if form.list.associative and (left or right):
            return _ListMerge(form.list, left, right).run() or _ABSENT
    return live if config is _ABSENT else config


def _merge_maps(atom: MapAtom, live: Any, config: Any) -> Any:
    left = live if isinstance(live, dict) else {}
    right = config if isinstance(config, dict) else {}
    if atom.atomic or not (left or right):
        return live if config is _ABSENT else config
    out = {}
    for name in [*left, *(name for name in right if name not in left)]:
        merged = _merge(atom.child(name), left.get(name, _ABSENT), right.get(name, _ABSENT))
        if merged is not _ABSENT:
            out[name] = merged
    return out or _ABSENT


class _ListMerge:
    """Merge of two lists in one pass; `shared` holds the remaining common items in the configuration's order."""

    def __init__(self, atom: ListAtom, left: list[Any], right: list[Any]) -> None:
        self.atom = atom
        self.left, self.right = left, right
        self.left_elements = [atom.element_of(item) for item in left]
        self.right_elements = [atom.element_of(item) for item in right]
        self.theirs = dict(zip(self.right_elements, right, strict=True))
        self.ours: dict[str, Any] = {}
        for element, item in zip(self.left_elements, left, strict=True):
            # Items with equal keys are replaced, not merged.
            self.ours[element] = None if element in self.ours else item
        self.shared = deque(element for element in self.right_elements if element in self.ours)
        self.taken: set[str] = set()
        self.out: list[Any] = []

    def run(self) -> list[Any]:
        at, to = 0, 0
        while at < len(self.left) or to < len(self.right):
            if at < len(self.left):
                element = self.left_elements[at]
                if element not in self.theirs:
                    self._put(self.left[at], _ABSENT)
                    at += 1
                    continue
                if self._must_wait(element, to):
                    at += 1
                    continue
                at += element in self.taken or element == self.right_elements[to]
            if to < len(self.right):
                element = self.right_elements[to]
                self.taken.add(element)
                if self.shared and self.shared[0] == element:
                    self.shared.popleft()
                self._put(self.ours.get(element, _ABSENT), self.theirs[element])
                to += 1
        return self.out

    def _must_wait(self, element: str, to: int) -> bool:
        """Report whether another shared item comes first, so that this item is placed later."""
        if to >= len(self.right) or element == self.right_elements[to]:
            return False
        return bool(self.shared) and self.shared[0] != element

    def _put(self, ours: Any, theirs: Any) -> None:
        merged = _merge(self.atom.element, ours, theirs)
        if merged is not _ABSENT:
            self.out.append(merged)
