"""Metrics of authorizer decisions."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.authz.rules import Rules, rules_of
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally

DECISIONS = CounterTally(
    "apiserver_authorization_decisions",
    "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
    ("type", "name", "decision"),
    registry=REGISTRY,
)


class InstrumentedAuthorizer:
    def __init__(self, authorizer: Authorizer, *, type: str, name: str) -> None:
        self._authorizer = authorizer
        self._allowed, self._denied = (type, name, "allowed"), (type, name, "denied")

    async def authorize(self, attributes: Attributes) -> Answer:
        answer = await self._authorizer.authorize(attributes)
        if answer.decision is not Decision.NO_OPINION:
            DECISIONS.inc(self._allowed if answer.decision is Decision.ALLOW else self._denied)
        return answer

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return await rules_of(self._authorizer, user, namespace)
