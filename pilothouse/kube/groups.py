"""The table of API groups under /apis: one row per kind, in the order of installation.

Groups with dependencies on the server, such as its authorizer, have a storage provider in their folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Protocol

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import PostStartHook
from pilothouse.kube.admissionregistration.storage_provider import AdmissionRegistrationStorageProvider
from pilothouse.kube.apiserverinternal.storage_versions import STORAGE_VERSIONS
from pilothouse.kube.apps.controllerrevisions import CONTROLLER_REVISIONS
from pilothouse.kube.apps.daemonsets import DAEMON_SETS
from pilothouse.kube.apps.deployments import DEPLOYMENTS
from pilothouse.kube.apps.replicasets import REPLICA_SETS
from pilothouse.kube.apps.statefulsets import STATEFUL_SETS
from pilothouse.kube.authentication.storage_provider import AuthenticationStorageProvider
from pilothouse.kube.authorization.storage_provider import AuthorizationStorageProvider
from pilothouse.kube.autoscaling.horizontalpodautoscalers import HORIZONTAL_POD_AUTOSCALERS
from pilothouse.kube.autoscaling.v1 import V1_CONVERSION
from pilothouse.kube.batch.cronjobs import CRON_JOBS
from pilothouse.kube.batch.jobs import JOBS, served_jobs
from pilothouse.kube.certificates.storage_provider import CertificatesStorageProvider
from pilothouse.kube.coordination.lease_candidates import LEASE_CANDIDATES
from pilothouse.kube.coordination.leases import LEASES, served_leases
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.events.events import EVENTS, served_events
from pilothouse.kube.flowcontrol.storage_provider import FlowControlStorageProvider
from pilothouse.kube.networking.ingress_classes import INGRESS_CLASSES
from pilothouse.kube.networking.ingresses import INGRESSES
from pilothouse.kube.networking.ip_addresses import IP_ADDRESSES
from pilothouse.kube.networking.network_policies import NETWORK_POLICIES
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS
from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.kube.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.kube.rbac.storage_provider import RBACStorageProvider
from pilothouse.kube.registries import Registries
from pilothouse.kube.resource.storage_provider import ResourceStorageProvider
from pilothouse.kube.scheduling.pod_groups import POD_GROUPS
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES, SystemPriorityClasses
from pilothouse.kube.scheduling.workloads import WORKLOADS
from pilothouse.kube.served import VersionConversion, in_version, served_scale, with_status
from pilothouse.kube.storage.csidrivers import CSI_DRIVERS
from pilothouse.kube.storage.csinodes import CSI_NODES, served_csi_nodes
from pilothouse.kube.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from pilothouse.kube.storage.storageclasses import STORAGE_CLASSES
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS
from pilothouse.kube.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from pilothouse.kube.storagemigration.storage_version_migrations import STORAGE_VERSION_MIGRATIONS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind


class RESTStorageProvider(Protocol):
    """An installable group."""

    def open(self, registries: Registries) -> APIGroup: ...


@dataclass(frozen=True, slots=True)
class Also:
    """A served version other than the storage version. Without a conversion, both versions have the same fields."""

    version: str
    conversion: VersionConversion | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A resource of a group, with its status subresource if declared."""

    resource: Resource
    also: tuple[Also, ...] = ()
    scale: bool = False
    """Whether the resource has a scale subresource."""
    gate: str = ""
    """Feature gate that must be enabled for this resource."""
    serve: Callable[[Registries], list[ServedResource]] | None = None
    """Replaces the default storage."""

    def open(self, registries: Registries) -> Iterator[tuple[str, list[ServedResource]]]:
        """Yield each version with its resources, version of the resource first."""
        if not self._is_served(registries):
            return
        if self.serve is not None:
            stored = self.serve(registries)
        else:
            registry = registries.open(self.resource)
            stored = with_status(registry)
            if self.scale:
                stored.append(served_scale(registry))
        for other in (Also(self.resource.version), *self.also):
            version = GroupVersion(self.resource.group, other.version)
            conversions = {self.resource.names.plural: other.conversion} if other.conversion else None
            yield other.version, in_version(version, stored, conversions=conversions)

    def _is_served(self, registries: Registries) -> bool:
        """Alpha and beta kinds are opened only if a version of theirs is enabled. Stable kinds are always open."""
        if self.gate and not registries.features.enabled(self.gate):
            return False
        versions = (self.resource.version, *(other.version for other in self.also))
        stable = (version for version in versions if "alpha" not in version and "beta" not in version)
        kinds = (GroupVersionKind(self.resource.group, version, self.resource.names.kind) for version in stable)
        return any(map(registries.is_served, kinds)) or registries.is_enabled(self.resource, *versions)


@dataclass(frozen=True, slots=True)
class Group:
    """A group as a list of rows. Versions are in the order of the rows, stable versions first."""

    name: str
    rows: tuple[Row, ...]
    hooks: Callable[[Registries], Mapping[str, PostStartHook]] = field(default=lambda _: {})

    def open(self, registries: Registries) -> APIGroup:
        versions: dict[str, list[ServedResource]] = {}
        for row in self.rows:
            for version, resources in row.open(registries):
                versions.setdefault(version, []).extend(resources)
        return APIGroup(
            self.name,
            [
                APIVersion(GroupVersion(self.name, version), versions[version])
                for version in sorted(versions, key=lambda version: "alpha" in version or "beta" in version)
            ],
            dict(self.hooks(registries)),
        )


GROUPS = (
    Group("internal.apiserver.k8s.io", (Row(STORAGE_VERSIONS),)),
    Group(
        "apps",
        (
            Row(CONTROLLER_REVISIONS),
            Row(DAEMON_SETS),
            Row(DEPLOYMENTS, scale=True),
            Row(REPLICA_SETS, scale=True),
            Row(STATEFUL_SETS, scale=True),
        ),
    ),
    Group("autoscaling", (Row(HORIZONTAL_POD_AUTOSCALERS, also=(Also("v1", conversion=V1_CONVERSION),)),)),
    Group("batch", (Row(JOBS, serve=served_jobs), Row(CRON_JOBS))),
    Group(
        "coordination.k8s.io",
        (
            Row(LEASES, serve=served_leases),
            Row(LEASE_CANDIDATES, also=(Also("v1alpha2"),)),
        ),
    ),
    Group("discovery.k8s.io", (Row(ENDPOINT_SLICES),)),
    Group("events.k8s.io", (Row(EVENTS, serve=served_events),)),
    Group(
        "networking.k8s.io",
        (
            Row(INGRESS_CLASSES),
            Row(INGRESSES),
            Row(IP_ADDRESSES, also=(Also("v1beta1"),)),
            Row(NETWORK_POLICIES),
            Row(SERVICE_CIDRS, also=(Also("v1beta1"),)),
        ),
    ),
    Group("policy", (Row(POD_DISRUPTION_BUDGETS),)),
    Group("node.k8s.io", (Row(RUNTIME_CLASSES),)),
    Group(
        "scheduling.k8s.io",
        (
            Row(PRIORITY_CLASSES),
            Row(WORKLOADS, gate="GenericWorkload"),
            Row(POD_GROUPS, gate="GenericWorkload"),
        ),
        hooks=lambda registries: {
            "scheduling/bootstrap-system-priority-classes": SystemPriorityClasses(
                registries.open(PRIORITY_CLASSES)
            ).start,
        },
    ),
    Group(
        "storage.k8s.io",
        (
            Row(CSI_DRIVERS),
            Row(CSI_NODES, serve=served_csi_nodes),
            Row(CSI_STORAGE_CAPACITIES),
            Row(STORAGE_CLASSES),
            Row(VOLUME_ATTACHMENTS),
            Row(VOLUME_ATTRIBUTES_CLASSES, also=(Also("v1beta1"), Also("v1alpha1"))),
        ),
    ),
    Group(
        "storagemigration.k8s.io",
        (Row(STORAGE_VERSION_MIGRATIONS, also=(Also("v1"), Also("v1alpha1")), gate="StorageVersionMigrator"),),
    ),
)


def storage_providers(generic: GenericConfig, policy: RBACPolicy) -> tuple[RESTStorageProvider, ...]:
    """Return every group under /apis, in the order of installation."""
    return (
        AuthenticationStorageProvider(generic.tokens, generic.api_audiences),
        AuthorizationStorageProvider(generic.authorizer),
        AdmissionRegistrationStorageProvider(generic.authorizer),
        ResourceStorageProvider(generic.authorizer),
        RBACStorageProvider(generic.authorizer, policy),
        CertificatesStorageProvider(generic.authorizer),
        *GROUPS,
        FlowControlStorageProvider(generic.flow_control),
    )
