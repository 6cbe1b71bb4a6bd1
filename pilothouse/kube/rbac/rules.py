"""Policy rules as values, and the indexed rules of a role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
        shown: Json = {"verbs": list(self.verbs)}
        rest = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return shown | {key: list(values) for key, values in rest.items() if values}

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
