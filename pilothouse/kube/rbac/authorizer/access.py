"""What one user may do in one namespace. It remembers what was asked for, so that asking again costs the same however
many roles the user has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.kube.rbac.authorizer.grants import Grant, RoleRef
from pilothouse.kube.rbac.rules import Role, Rule
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import aggregate

_MOST_REMEMBERED = 1024
"""Anybody can ask for any number of resources and paths that do not exist."""


@dataclass(slots=True)
class _Permits:
    """On all objects of a resource, and on those with certain names."""

    all: Answer | None = None
    named: dict[str, Answer] = field(default_factory=dict)


class Access:
    def __init__(self, granted: Sequence[tuple[Grant, Role]], missing: Sequence[RoleRef]) -> None:
        """`missing` are roles that are granted, too, but not there."""
        self.missing = missing
        self._granted = granted
        self._refusal = Answer(Decision.NO_OPINION, f"RBAC: {self.problem}" if missing else "")
        self._resources: dict[tuple[str, str, str, str], _Permits] = {}
        self._paths: dict[tuple[str, str], Answer] = {}

    @property
    def problem(self) -> str:
        """Why there may be more that the user may do; empty where nothing is missing."""
        return aggregate(reference.missing for reference in self.missing) if self.missing else ""

    @property
    def rules(self) -> list[Rule]:
        return [rule for _, role in self._granted for rule in role.rules]

    def decide(self, asked: Attributes) -> Answer:
        if not asked.is_resource:
            return self._paths.get((asked.verb, asked.path)) or self._decide_path(asked.verb, asked.path)
        shape = (asked.verb, asked.group, asked.resource, asked.subresource)
        permits = self._resources.get(shape) or self._permits(shape)
        return permits.all or permits.named.get(asked.name) or self._refusal

    def _permits(self, shape: tuple[str, str, str, str]) -> _Permits:
        permits = _Permits()
        for grant, role in self._granted:
            for rule in role.matching(*shape):
                if not rule.names:
                    permits.all = permits.all or _allowed_by(grant)
                for name in rule.names:
                    permits.named.setdefault(name, _allowed_by(grant))
        if len(self._resources) >= _MOST_REMEMBERED:
            self._resources.clear()
        self._resources[shape] = permits
        return permits

    def _decide_path(self, verb: str, path: str) -> Answer:
        found = next((grant for grant, role in self._granted if role.allows_path(verb, path)), None)
        answer = _allowed_by(found) if found else self._refusal
        if len(self._paths) >= _MOST_REMEMBERED:
            self._paths.clear()
        self._paths[(verb, path)] = answer
        return answer


def _allowed_by(grant: Grant) -> Answer:
    return Answer(Decision.ALLOW, f"RBAC: allowed by {grant.source}")
