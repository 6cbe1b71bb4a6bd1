"""Whether some rules allow everything that others allow: who may grant a right, and what a role lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.kube.rbac.rules import ALL, PolicyRule, path_covers


def uncovered(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return all parts of `wanted` that no rule of `owned` allows, each of one verb, one resource and at most one name.

    Each of those is allowed by a single rule or by none, so nothing is missed by looking at one rule at a time.
    """
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(own, part) for own in owned)]


def compacted(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the rules with those joined that differ by their verbs only."""
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
    """Return a name at a time; the empty list, which stands for all names, as itself."""
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
