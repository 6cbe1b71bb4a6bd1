"""The access of one user in one namespace: the rules that are granted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.kube.rbac.authorizer.grants import Grant, RoleRef
from pilothouse.kube.rbac.rules import PolicyRule, Role
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import aggregate


@dataclass(slots=True)
class Permits:
    """The answers for one verb: for all objects of a resource or for a path, for certain names, and else."""

    refusal: Answer
    all: Answer | None = None
    named: dict[str, Answer] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 256 + 320 * len(self.named)


class UserAccess:
    def __init__(self, granted: Sequence[tuple[Grant, Role]], missing: Sequence[RoleRef]) -> None:
        """`missing` are roles that are granted, too, but not there."""
        self.missing = missing
        self._granted = granted
        self._refusal = Answer(Decision.NO_OPINION, f"RBAC: {self.problem}" if missing else "")

    @property
    def problem(self) -> str:
        """The roles that are missing, as words: with them the user might do more. Empty where none is."""
        return aggregate(reference.missing for reference in self.missing) if self.missing else ""

    @property
    def size(self) -> int:
        """About how many bytes it takes, without the roles and grants, which others have too."""
        return 256 + 128 * (len(self._granted) + len(self.missing)) + len(self._refusal.reason)

    @property
    def rules(self) -> list[PolicyRule]:
        return [rule for _, role in self._granted for rule in role.rules]

    def permits(self, asked: Attributes) -> Permits:
        """Return the answers for the verb and the resource or path that are asked about, whatever object it is."""
        found = Permits(self._refusal)
        if not asked.is_resource:
            matching = (grant for grant, role in self._granted if role.allows_path(asked.verb, asked.path))
            grant = next(matching, None)
            found.all = None if grant is None else _allowed_by(grant)
            return found
        for grant, role in self._granted:
            for rule in role.matching(asked.verb, asked.group, asked.resource, asked.subresource):
                if not rule.names:
                    found.all = found.all or _allowed_by(grant)
                for name in rule.names:
                    found.named.setdefault(name, _allowed_by(grant))
        return found


def _allowed_by(grant: Grant) -> Answer:
    return Answer(Decision.ALLOW, f"RBAC: allowed by {grant.source}")
