"""Missing rights, computed without enumerating single rights: a small rule can stand for millions.

A rule is a box: verbs × groups × resources × names. Words covered by the same owned rules form a class and are
interchangeable. Boxes are split by class, and only displayed boxes are expanded:

    held     get pods, get secrets          wanted   {get, list} × {pods, secrets, nodes}
    classes  {pods} {secrets} {nodes}       missing  {list} × {pods}, {list} × {secrets}, {get, list} × {nodes}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pilothouse.kube.rbac.rules import ALL, PolicyRule, compacted
from pilothouse.machinery.dataclass import dataclass

_BLOCK = 2048
"""Owned rules per batch; rule sets are bits of an integer, which stays small."""
_MOST_TEXT = 1 << 18
"""Maximum characters of the words in displayed rules."""


@dataclass(frozen=True, slots=True)
class MissingRights:
    """Rules with one group, one resource, at most one name and the missing verbs, or with one path and one verb."""

    rules: list[PolicyRule]
    is_all: bool = True
    """False if the list is truncated."""


def missing_rights(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> MissingRights:
    """Return the parts of `wanted` outside `owned`; at least one rule if any part is missing."""
    boxes: Iterable[PolicyRule] = wanted
    for start in range(0, len(owned), _BLOCK):
        boxes = _cut(_Held(owned[start : start + _BLOCK]), boxes)
    parts = (part for box in boxes for part in _split(box) if part.verbs)
    fitting = list(_as_many_as_fit(parts))
    return MissingRights(compacted(fitting), is_all=next(parts, None) is None)


def _cut(held: _Held, boxes: Iterable[PolicyRule]) -> Iterator[PolicyRule]:
    for box in boxes:
        yield from held.missing(box)


def _split(box: PolicyRule) -> Iterator[PolicyRule]:
    for group in box.groups:
        for resource in box.resources:
            if not box.names:
                yield PolicyRule(box.verbs, (group,), (resource,))
            for name in box.names:
                yield PolicyRule(box.verbs, (group,), (resource,), (name,))
    for path in box.paths:
        for verb in box.verbs:
            yield PolicyRule((verb,), paths=(path,))


def _as_many_as_fit(rules: Iterable[PolicyRule]) -> Iterator[PolicyRule]:
    room = _MOST_TEXT
    for rule in rules:
        yield rule
        room -= sum(map(len, (*rule.verbs, *rule.groups, *rule.resources, *rule.names, *rule.paths)))
        if room < 0:
            return


class _Words:
    """An index of the words in one list of the owned rules. Rule sets are bit masks."""

    def __init__(self, lists: Iterable[tuple[str, ...]]) -> None:
        self._having: dict[str, int] = {}
        for at, words in enumerate(lists):
            for word in words:
                self._having[word] = self._having.get(word, 0) | 1 << at

    def having(self, word: str) -> int:
        return self._having.get(word, 0)

    def covering(self, word: str) -> int:
        return self.having(word) | self.having(ALL)

    def covering_resource(self, resource: str) -> int:
        _, slash, subresource = resource.partition("/")
        return self.covering(resource) | (self.having(f"*/{subresource}") if slash else 0)


class _Paths(_Words):
    def __init__(self, lists: list[tuple[str, ...]]) -> None:
        super().__init__(lists)
        starred = [tuple(path.rstrip(ALL) for path in paths if path.endswith(ALL)) for paths in lists]
        self._beginning = _Words(starred)
        self._lengths = sorted({len(beginning) for paths in starred for beginning in paths})

    def covering(self, word: str) -> int:
        """Return the rules covering a path. A trailing star matches a prefix."""
        covering = self.having(word)
        for length in self._lengths:
            if length > len(word):
                break
            covering |= self._beginning.having(word[:length])
        return covering


class _Held:
    """Owned rules, indexed by words. Rule sets are bit masks."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self._verbs = _Words(rule.verbs for rule in rules)
        self._groups = _Words(rule.groups for rule in rules)
        self._resources = _Words(rule.resources for rule in rules)
        self._names = _Words(rule.names for rule in rules)
        self._paths = _Paths([rule.paths for rule in rules])
        self._for_all_names = sum(1 << at for at, rule in enumerate(rules) if not rule.names)

    def missing(self, box: PolicyRule) -> Iterator[PolicyRule]:
        """Return the parts of the box that no rule allows."""
        verbs = _Verbs(box.verbs, self._verbs)
        resources = _classes(box.resources, self._resources.covering_resource)
        names = _classes(box.names, self._covering_name) if box.names else {self._for_all_names: ()}
        for group_rules, groups in _classes(box.groups, self._groups.covering).items():
            for resource_rules, some in resources.items():
                for name_rules, named in names.items():
                    if lacking := verbs.outside(group_rules & resource_rules & name_rules):
                        yield PolicyRule(lacking, groups, some, named)
        for rules, paths in _classes(box.paths, self._paths.covering).items():
            if lacking := verbs.outside(rules & self._for_all_names):
                yield PolicyRule(lacking, paths=paths)

    def _covering_name(self, name: str) -> int:
        return self._names.having(name) | self._for_all_names


class _Verbs:
    """The verbs of a box."""

    def __init__(self, verbs: tuple[str, ...], held: _Words) -> None:
        self._verbs = [(verb, held.covering(verb)) for verb in verbs]
        self._outside: dict[int, tuple[str, ...]] = {}

    def outside(self, rules: int) -> tuple[str, ...]:
        """Return the words outside all rules."""
        result = self._outside.get(rules)
        if result is None:
            result = self._outside[rules] = tuple(verb for verb, having in self._verbs if not having & rules)
        return result


def _classes(words: Iterable[str], covering: Callable[[str], int]) -> dict[int, tuple[str, ...]]:
    """Group words by covering rules."""
    classes: dict[int, list[str]] = {}
    for word in words:
        classes.setdefault(covering(word), []).append(word)
    return {rules: tuple(some) for rules, some in classes.items()}
