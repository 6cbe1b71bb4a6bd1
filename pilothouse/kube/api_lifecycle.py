"""API lifecycle of kinds in versions that not every release serves: introduction, deprecation, removal, storage.

Kinds and versions without a row are served by every release, without a warning.
"""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.routes import Deprecation
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Minor versions of the events in the life of a kind in one version; 0 for an event that is not planned."""

    introduced: int
    deprecated: int = 0
    removed: int = 0
    replaced: bool = False
    """Whether upstream's warning names v1 as the replacement."""
    dropped: int = 0
    """First release without the type, if before `removed`."""

    def is_served(self, emulated: int, binary: int) -> bool:
        """Return whether a binary serves the kind while it emulates a version."""
        is_removed = (self.removed and emulated >= self.removed) or (self.dropped and binary >= self.dropped)
        return self.introduced <= emulated and not is_removed


_POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
_DEVICES = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")

_ROWS: tuple[tuple[str, str, tuple[str, ...], Lifecycle], ...] = (
    ("admissionregistration.k8s.io", "v1", _POLICIES, Lifecycle(36)),
    ("admissionregistration.k8s.io", "v1beta1", _POLICIES, Lifecycle(34, 37, 40, replaced=True)),
    ("admissionregistration.k8s.io", "v1alpha1", _POLICIES, Lifecycle(32, 35, 38)),
    ("certificates.k8s.io", "v1", ("ClusterTrustBundle", "PodCertificateRequest"), Lifecycle(37)),
    ("certificates.k8s.io", "v1beta1", ("ClusterTrustBundle",), Lifecycle(33, 37, 40, replaced=True)),
    ("certificates.k8s.io", "v1beta1", ("PodCertificateRequest",), Lifecycle(35, 37, 40, replaced=True)),
    ("certificates.k8s.io", "v1alpha1", ("ClusterTrustBundle",), Lifecycle(26, 34, 37)),
    ("certificates.k8s.io", "v1alpha1", ("PodCertificateRequest",), Lifecycle(34, 37, 40, dropped=35)),
    ("coordination.k8s.io", "v1beta1", ("LeaseCandidate",), Lifecycle(33, 36, 39)),
    ("coordination.k8s.io", "v1alpha2", ("LeaseCandidate",), Lifecycle(32, 35, 38)),
    ("networking.k8s.io", "v1beta1", ("IPAddress", "ServiceCIDR"), Lifecycle(31, 34, 37)),
    ("resource.k8s.io", "v1", ("DeviceTaintRule",), Lifecycle(37)),
    ("resource.k8s.io", "v1beta2", _DEVICES, Lifecycle(33, 36, 39)),
    ("resource.k8s.io", "v1beta2", ("DeviceTaintRule",), Lifecycle(36, 39, 42)),
    ("resource.k8s.io", "v1beta1", _DEVICES, Lifecycle(32, 35, 38)),
    ("resource.k8s.io", "v1alpha3", ("DeviceTaintRule",), Lifecycle(33, 36, 39)),
    ("resource.k8s.io", "v1alpha3", ("ResourcePoolStatusRequest",), Lifecycle(36, 39, 42)),
    ("scheduling.k8s.io", "v1alpha2", ("PodGroup", "Workload"), Lifecycle(36, dropped=37)),
    ("storage.k8s.io", "v1beta1", ("VolumeAttributesClass",), Lifecycle(31, 34, 37, replaced=True)),
    ("storage.k8s.io", "v1alpha1", ("VolumeAttributesClass",), Lifecycle(29, 32, 35, replaced=True)),
    ("storagemigration.k8s.io", "v1", ("StorageVersionMigration",), Lifecycle(37)),
    ("storagemigration.k8s.io", "v1beta1", ("StorageVersionMigration",), Lifecycle(35, 37, 40, replaced=True)),
    ("storagemigration.k8s.io", "v1alpha1", ("StorageVersionMigration",), Lifecycle(30, 33, 36, dropped=35)),
)

LIFECYCLES = {
    GroupVersionKind(group, version, kind): lifecycle for group, version, kinds, lifecycle in _ROWS for kind in kinds
}

_STORED: dict[int, dict[GroupResource, str]] = {
    34: {
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "v1alpha1",
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "v1alpha1",
        GroupResource("certificates.k8s.io", "podcertificaterequests"): "v1alpha1",
        GroupResource("resource.k8s.io", "deviceclasses"): "v1beta2",
        GroupResource("resource.k8s.io", "resourceclaims"): "v1beta2",
        GroupResource("resource.k8s.io", "resourceclaimtemplates"): "v1beta2",
        GroupResource("resource.k8s.io", "resourceslices"): "v1beta2",
        GroupResource("storage.k8s.io", "volumeattributesclasses"): "v1beta1",
        GroupResource("storagemigration.k8s.io", "storageversionmigrations"): "v1alpha1",
    },
    35: {
        GroupResource("storage.k8s.io", "volumeattributesclasses"): "v1beta1",
    },
    37: {
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "v1",
        GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "v1",
        GroupResource("resource.k8s.io", "devicetaintrules"): "v1beta2",
    },
}
"""Minor version -> resource -> storage version, if other than the version of its `Resource`."""


def is_served(kind: GroupVersionKind, features: FeatureGates) -> bool:
    """Return whether this release serves the kind in its version, while it emulates the version of the features."""
    lifecycle = LIFECYCLES.get(kind)
    return lifecycle is None or lifecycle.is_served(features.versions[0], release.current().minor)


def deprecation_of(kind: GroupVersionKind) -> Deprecation | None:
    """Return the deprecation of a kind that is deprecated in this release."""
    lifecycle = LIFECYCLES.get(kind)
    if lifecycle is None or not lifecycle.deprecated or release.current().minor < lifecycle.deprecated:
        return None
    replacement = GroupVersion(kind.group, "v1").kind(kind.kind) if lifecycle.replaced else None
    return Deprecation(f"1.{lifecycle.deprecated}", f"1.{lifecycle.removed}", replacement)


def in_storage_version(resource: Resource) -> Resource:
    """Return the resource in the storage version of this release."""
    version = _STORED.get(release.current().minor, {}).get(resource.group_resource, resource.version)
    return resource if version == resource.version else replace(resource, version=version)
