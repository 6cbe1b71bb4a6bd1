"""The storages of rbac.authorization.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.server.hooks import HookContext, PostStartHook
from pilothouse.kube.rbac.authorizer import PolicyFeed
from pilothouse.kube.rbac.bindings import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from pilothouse.kube.rbac.escalation import Escalation, PolicyBasedStorage
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.kube.rbac.reconciliation import BootstrapPolicy
from pilothouse.kube.rbac.roles import CLUSTER_ROLES, GROUP, ROLES
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served
from pilothouse.machinery.names import GroupVersion


class RBACStorageProvider:
    def __init__(self, authorizer: Authorizer, policy: RBACPolicy) -> None:
        self._authorizer = authorizer
        self._policy = policy

    def open(self, registries: Registries) -> APIGroup:
        roles = [registries.open(resource) for resource in (ROLES, CLUSTER_ROLES)]
        bindings = [registries.open(resource) for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)]
        feed = PolicyFeed(self._policy, roles=roles, bindings=bindings)
        escalation = Escalation(self._authorizer, feed)
        resources = [
            *(served(role, PolicyBasedStorage(role, escalation.check_role)) for role in roles),
            *(served(binding, PolicyBasedStorage(binding, escalation.check_binding)) for binding in bindings),
        ]
        bootstrap = BootstrapPolicy([*roles, *bindings], features=registries.features)
        return APIGroup(
            GROUP,
            [APIVersion(GroupVersion(GROUP, "v1"), resources)],
            post_start_hooks={"rbac/bootstrap-roles": _bootstrap(feed, bootstrap)},
        )


def _bootstrap(feed: PolicyFeed, roles: BootstrapPolicy) -> PostStartHook:
    """Fill the policy and ensure the bootstrap roles. Afterwards the authorizer applies them."""

    async def hook(context: HookContext) -> None:
        await feed.start(context)
        await roles.ensure()
        await feed.catch_up()

    return hook
