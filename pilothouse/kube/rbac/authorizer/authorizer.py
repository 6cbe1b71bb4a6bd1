"""The RBAC authorizer: allows granted requests; otherwise no opinion."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.authz.rules import NonResourceRule, ResourceRule, Rules
from pilothouse.kube.rbac.authorizer.policy import RBACPolicy

_NO_OPINION = Answer(Decision.NO_OPINION)


class RBACAuthorizer:
    def __init__(self, policy: RBACPolicy) -> None:
        self._policy = policy

    async def authorize(self, attributes: Attributes) -> Answer:
        if not self._policy.ready:
            return _NO_OPINION
        return self._policy.decide(attributes)

    async def rules_for(self, user: User, namespace: str) -> Rules:
        access = self._policy.access(user, namespace)
        rules = access.rules
        return Rules(
            resources=tuple(ResourceRule(r.verbs, r.groups, r.resources, r.names) for r in rules if r.resources),
            paths=tuple(NonResourceRule(r.verbs, r.paths) for r in rules if r.paths),
            error=access.problem,
        )
