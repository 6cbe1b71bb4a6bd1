"""Policy rules as values, the indexed rules of a role, and coverage of rules by other rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quoted_list
from pilothouse.machinery.objects import Json

ALL = "*"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule for resources or paths. An empty list of names matches every name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Json) -> PolicyRule:
        keys = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(key) or ()) for key in keys))

    def as_json(self) -> Json:
        """Return the rule as JSON in upstream's field order. Empty fields except verbs are omitted."""
        result: Json = {"verbs": list(self.verbs)}
        rest = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return result | {key: list(values) for key, values in rest.items() if values}

    @property
    def words(self) -> int:
        """Return the number of verbs, groups, resources, names and paths."""
        return len(self.verbs) + len(self.groups) + len(self.resources) + len(self.names) + len(self.paths)

    def with_verbs(self, verbs: Iterable[str]) -> PolicyRule:
        return PolicyRule(tuple(verbs), self.groups, self.resources, self.names, self.paths)

    def has_verb(self, verb: str) -> bool:
        return verb in self.verbs or ALL in self.verbs

    def has_group(self, group: str) -> bool:
        return group in self.groups or ALL in self.groups

    def has_path(self, path: str) -> bool:
        return any(path_covers(own, path) for own in self.paths)

    def __str__(self) -> str:
        """As upstream's messages show a rule."""
        parts = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.paths,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts.items() if values) + "}"


def path_covers(own: str, path: str) -> bool:
    """Report whether the path covers another path. A trailing star matches a prefix."""
    return own == path or (own.endswith(ALL) and path.startswith(own.rstrip(ALL)))


class Role:
    """The rules of a role, indexed by resource."""

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self.rules = tuple(rules)
        self._by_resource: dict[str, list[PolicyRule]] = {}
        for rule in self.rules:
            for resource in dict.fromkeys(rule.resources):
                self._by_resource.setdefault(resource, []).append(rule)

    @classmethod
    def of(cls, obj: Json) -> Role:
        return cls(map(PolicyRule.of, obj.get("rules") or ()))

    def matching(self, verb: str, group: str, resource: str, subresource: str) -> Iterator[PolicyRule]:
        """Return the rules for a resource, regardless of names."""
        named = (f"{resource}/{subresource}", f"*/{subresource}", ALL) if subresource else (resource, ALL)
        for candidate in named:
            for rule in self._by_resource.get(candidate, ()):
                if rule.has_verb(verb) and rule.has_group(group):
                    yield rule

    def allows_path(self, verb: str, path: str) -> bool:
        return any(rule.has_path(path) and rule.has_verb(verb) for rule in self.rules)


def uncovered(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the parts of `wanted` outside `owned`, each with one verb, one resource and at most one name.

    A single rule allows each part or no rule does, so rules can be checked separately.
    """
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(own, part) for own in owned)]


def compacted(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Merge rules with equal resources and different verbs."""
    joined: dict[PolicyRule, list[str]] = {}
    for rule in rules:
        if rule.paths:
            joined[rule] = list(rule.verbs)
        else:
            joined.setdefault(rule.with_verbs(()), []).extend(rule.verbs)
    return [rule.with_verbs(verbs) for rule, verbs in joined.items()]


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for names in _one_by_one(rule.names):
                    yield PolicyRule((verb,), (group,), (resource,), names)
    for path in rule.paths:
        for verb in rule.verbs:
            yield PolicyRule((verb,), paths=(path,))


def _one_by_one(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Split into single names. The empty list, which means all names, stays one item."""
    return [(name,) for name in names] if names else [()]


def _covers(own: PolicyRule, part: PolicyRule) -> bool:
    return (
        own.has_verb(part.verbs[0])
        and all(map(own.has_group, part.groups))
        and all(_covers_resource(own, resource) for resource in part.resources)
        and (not own.names or (bool(part.names) and part.names[0] in own.names))
        and all(any(path_covers(path, wanted) for path in own.paths) for wanted in part.paths)
    )


def _covers_resource(own: PolicyRule, resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return ALL in own.resources or resource in own.resources or bool(slash and f"*/{subresource}" in own.resources)
