"""The storages of rbac.authorization.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.rbac.bindings import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from pilothouse.kube.rbac.roles import CLUSTER_ROLES, GROUP, ROLES
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class RBACStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        resources = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), [served(registries.open(r)) for r in resources])])
