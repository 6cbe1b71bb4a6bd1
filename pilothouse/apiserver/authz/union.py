"""Several authorizers in order: the first that allows or denies decides."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision


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
