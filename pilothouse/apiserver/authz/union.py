"""Several authorizers in order: the first that allows or denies decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.authz.rules import Rules, rules_of, union_of_rules
from pilothouse.machinery.status_error import aggregate


class UnionAuthorizer:
    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self.authorizers = tuple(authorizers)

    async def authorize(self, attributes: Attributes) -> Answer:
        reasons: list[str] = []
        errors: list[str] = []
        for authorizer in self.authorizers:
            answer = await authorizer.authorize(attributes)
            if answer.decision is not Decision.NO_OPINION:
                return replace(answer, error=_joined([*errors, answer.error])) if errors else answer
            if answer.reason:
                reasons.append(answer.reason)
            if answer.error:
                errors.append(answer.error)
        return Answer(Decision.NO_OPINION, "\n".join(reasons), _joined(errors))

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return union_of_rules([await rules_of(each, user, namespace) for each in self.authorizers])


def _joined(errors: Sequence[str]) -> str:
    there = [error for error in errors if error]
    return aggregate(there) if there else ""
