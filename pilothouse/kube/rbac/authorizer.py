"""The RBAC authorizer: allows granted requests; otherwise no opinion. Watch caches of roles and bindings feed its
policy.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision, NonResourceRule, ResourceRule, Rules
from pilothouse.apiserver.registry.informer import RegistryFollower, start_following
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.rbac.policy import RBACPolicy, Scoped

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


class PolicyFeed:
    def __init__(
        self, policy: RBACPolicy, *, roles: Iterable[RegistryStore], bindings: Iterable[RegistryStore]
    ) -> None:
        self.policy = policy
        self._followers = [
            *(RegistryFollower(registry, policy.put_role, self._drop_role) for registry in roles),
            *(RegistryFollower(registry, policy.put_binding, self._drop_binding) for registry in bindings),
        ]

    async def start(self, context: HookContext) -> None:
        """Fill the policy and keep it up to date."""
        await start_following(self._followers, context, who="rbac authorizer")
        self.policy.ready = True

    async def catch_up(self) -> None:
        """Wait until the policy includes all earlier writes. Raise StorageError."""
        for follower in self._followers:
            await follower.catch_up()

    def _drop_role(self, namespace: str, name: str) -> None:
        self.policy.drop_role(Scoped(namespace, name))

    def _drop_binding(self, namespace: str, name: str) -> None:
        self.policy.drop_binding(Scoped(namespace, name))
