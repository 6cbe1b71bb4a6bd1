"""Coverage of rules by other rules, for escalation checks and reconciliation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.kube.rbac.rules import ALL, PolicyRule, path_covers


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
