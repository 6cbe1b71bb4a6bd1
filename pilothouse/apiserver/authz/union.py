"""The union of authorizers, and metrics of their decisions. The first allow or deny decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz import interface
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.machinery.status_error import aggregate


class UnionAuthorizer:
    def __init__(self, authorizers: Sequence[interface.Authorizer]) -> None:
        self.authorizers = tuple(authorizers)

    async def authorize(self, attributes: interface.Attributes) -> interface.Answer:
        undecided: list[interface.Answer] = []
        for authorizer in self.authorizers:
            answer = await authorizer.authorize(attributes)
            if answer.decision is not interface.Decision.NO_OPINION:
                return answer if not undecided else replace(answer, error=_errors([*undecided, answer]))
            if answer.reason or answer.error:
                undecided.append(answer)
        reasons = (answer.reason for answer in undecided if answer.reason)
        return interface.Answer(interface.Decision.NO_OPINION, "\n".join(reasons), _errors(undecided))

    async def rules_for(self, user: User, namespace: str) -> interface.Rules:
        return interface.union_of_rules([await interface.rules_of(each, user, namespace) for each in self.authorizers])


def _errors(answers: Sequence[interface.Answer]) -> str:
    there = [answer.error for answer in answers if answer.error]
    return aggregate(there) if there else ""


DECISIONS = CounterTally(
    "apiserver_authorization_decisions",
    "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
    ("type", "name", "decision"),
    registry=REGISTRY,
)


class InstrumentedAuthorizer:
    def __init__(self, authorizer: interface.Authorizer, *, type: str, name: str) -> None:
        self._authorizer = authorizer
        self._allowed, self._denied = (type, name, "allowed"), (type, name, "denied")

    async def authorize(self, attributes: interface.Attributes) -> interface.Answer:
        answer = await self._authorizer.authorize(attributes)
        if answer.decision is not interface.Decision.NO_OPINION:
            DECISIONS.inc(self._allowed if answer.decision is interface.Decision.ALLOW else self._denied)
        return answer

    async def rules_for(self, user: User, namespace: str) -> interface.Rules:
        return await interface.rules_of(self._authorizer, user, namespace)
