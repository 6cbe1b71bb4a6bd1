"""Roles and bindings on a real embedded store, with the policy that follows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.apiserver import HookContext, RegistryStore, SqliteStore
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.client import Json
from pilothouse.kube.rbac.authorizer import PolicyFeed
from pilothouse.kube.rbac.bindings import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.kube.rbac.reconciliation import BootstrapPolicy
from pilothouse.kube.rbac.roles import CLUSTER_ROLES, ROLES
from pilothouse.kube.registries import Registries

GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class RBACStore:
    store: SqliteStore
    registries: Registries
    context: HookContext = field(default_factory=HookContext)
    policy: RBACPolicy = field(default_factory=RBACPolicy)

    @property
    def roles(self) -> list[RegistryStore]:
        return [self.registries.open(resource) for resource in (ROLES, CLUSTER_ROLES)]

    @property
    def bindings(self) -> list[RegistryStore]:
        return [self.registries.open(resource) for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)]

    def of(self, kind: str) -> RegistryStore:
        return next(each for each in (*self.roles, *self.bindings) if each.resource.names.kind == kind)

    def access(self, kind: str) -> OwnAccess:
        return OwnAccess(self.of(kind))

    async def feed(self) -> PolicyFeed:
        feed = PolicyFeed(self.policy, roles=self.roles, bindings=self.bindings)
        await feed.start(self.context)
        return feed

    async def bootstrap(self) -> None:
        await BootstrapPolicy([*self.roles, *self.bindings], pause=0).ensure()


@asynccontextmanager
async def rbac_store(folder: Path) -> AsyncIterator[RBACStore]:
    opened = RBACStore(store := await SqliteStore.open(folder / "store"), Registries(store))
    for registry in (*opened.roles, *opened.bindings):
        await registry.start()
    try:
        yield opened
    finally:
        await opened.context.stop()
        for registry in opened.registries.opened:
            await registry.stop()
        await store.close()


def role(name: str, *rules: Json, namespace: str = "", **rest: object) -> Json:
    kind = "Role" if namespace else "ClusterRole"
    return _object(kind, name, namespace) | {"rules": list(rules)} | rest


def binding(name: str, to: str, *subjects: Json, namespace: str = "", kind: str = "ClusterRole") -> Json:
    reference = {"apiGroup": GROUP, "kind": kind, "name": to}
    bound = _object("RoleBinding" if namespace else "ClusterRoleBinding", name, namespace)
    return bound | {"roleRef": reference, "subjects": list(subjects)}


def user(name: str) -> Json:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def allow(verbs: str, resources: str, *names: str, group: str = "") -> Json:
    rule: Json = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return rule | ({"resourceNames": list(names)} if names else {})


def _object(kind: str, name: str, namespace: str) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata}
