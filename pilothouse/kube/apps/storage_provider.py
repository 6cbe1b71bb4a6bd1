"""The storages of the group apps."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.kube.apps.controllerrevisions import CONTROLLER_REVISIONS
from pilothouse.kube.apps.daemonsets import DAEMON_SETS, DaemonSetStatusStrategy
from pilothouse.kube.apps.deployments import DEPLOYMENTS, DeploymentStatusStrategy
from pilothouse.kube.apps.replicasets import REPLICA_SETS, ReplicaSetStatusStrategy
from pilothouse.kube.apps.statefulsets import STATEFUL_SETS, StatefulSetStatusStrategy
from pilothouse.kube.scale import served_scale
from pilothouse.kube.served import Registries, served, with_status
from pilothouse.machinery.names import GroupVersion


class AppsStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        resources = [
            served(registries.open(CONTROLLER_REVISIONS)),
            *_workload(registries, DAEMON_SETS, DaemonSetStatusStrategy(), scales=False),
            *_workload(registries, DEPLOYMENTS, DeploymentStatusStrategy()),
            *_workload(registries, REPLICA_SETS, ReplicaSetStatusStrategy()),
            *_workload(registries, STATEFUL_SETS, StatefulSetStatusStrategy()),
        ]
        return APIGroup("apps", [APIVersion(GroupVersion("apps", "v1"), resources)])


def _workload(
    registries: Registries, resource: Resource, status: Strategy, *, scales: bool = True
) -> list[ServedResource]:
    registry = registries.open(resource)
    parts = with_status(registry, status)
    return [*parts, served_scale(registry)] if scales else parts
