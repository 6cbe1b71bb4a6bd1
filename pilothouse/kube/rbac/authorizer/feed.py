"""Feed of the RBAC policy from the watch caches of roles and bindings."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.informer import RegistryFollower, start_following
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.rbac.authorizer.policy import RBACPolicy, Scoped


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
