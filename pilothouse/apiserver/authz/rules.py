"""The rules of a user, as far as authorizers are rule-based."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ResourceRule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NonResourceRule:
    verbs: tuple[str, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    resources: tuple[ResourceRule, ...] = ()
    paths: tuple[NonResourceRule, ...] = ()
    incomplete: bool = False
    """Whether the user may have further permissions."""
    error: str = ""


NO_RULES = Rules()
ALL_RULES = Rules((ResourceRule(("*",), ("*",), ("*",)),), (NonResourceRule(("*",), ("*",)),))


@runtime_checkable
class RuleResolver(Protocol):
    """An authorizer that can list the permissions of a user in a namespace."""

    async def rules_for(self, user: User, namespace: str) -> Rules: ...


async def rules_of(authorizer: object, user: User, namespace: str) -> Rules:
    """Return the user's rules; empty for authorizers without rules."""
    return await authorizer.rules_for(user, namespace) if isinstance(authorizer, RuleResolver) else NO_RULES


def union_of_rules(all_rules: Iterable[Rules]) -> Rules:
    found = list(all_rules)
    return Rules(
        resources=tuple(rule for rules in found for rule in rules.resources),
        paths=tuple(rule for rules in found for rule in rules.paths),
        incomplete=any(rules.incomplete for rules in found),
        error=", ".join(rules.error for rules in found if rules.error),
    )
