"""Several authorizers in order: the first that allows or denies decides."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.authz.rules import Rules, rules_of, united


class UnionAuthorizer:
    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self.authorizers = tuple(authorizers)

    async def authorize(self, attributes: Attributes) -> Answer:
        reasons = []
        for authorizer in self.authorizers:
            answer = await authorizer.authorize(attributes)
            if answer.decision is not Decision.NO_OPINION:
                return answer
            if answer.reason:
                reasons.append(answer.reason)
        return Answer(Decision.NO_OPINION, "\n".join(reasons))

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return united([await rules_of(each, user, namespace) for each in self.authorizers])
