"""In which order clients are shown the built-in groups, and in each the versions.

Only what is served gets an APIService; a group version that is not in here gets none.
"""

from __future__ import annotations

from pilothouse.aggregator.api_services_to_register import APIServicePriority, Priorities
from pilothouse.machinery.names import GroupVersion

_GROUPS: dict[str, tuple[int, dict[str, int]]] = {
    "": (18000, {"v1": 1}),
    "apps": (17800, {"v1": 15}),
    "events.k8s.io": (17750, {"v1": 15, "v1beta1": 5}),
    "authentication.k8s.io": (17700, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "authorization.k8s.io": (17600, {"v1": 15}),
    "autoscaling": (17500, {"v2": 30, "v1": 15, "v2beta1": 9, "v2beta2": 1}),
    "batch": (17400, {"v1": 15, "v1beta1": 9, "v2alpha1": 9}),
    "certificates.k8s.io": (17300, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "networking.k8s.io": (17200, {"v1": 15, "v1beta1": 9}),
    "policy": (17100, {"v1": 15, "v1beta1": 9}),
    "rbac.authorization.k8s.io": (17000, {"v1": 15}),
    "storage.k8s.io": (16800, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "admissionregistration.k8s.io": (16700, {"v1": 15, "v1beta1": 12, "v1alpha1": 9}),
    "apiextensions.k8s.io": (16700, {"v1": 15}),
    "scheduling.k8s.io": (16600, {"v1": 15, "v1alpha2": 2}),
    "coordination.k8s.io": (16500, {"v1": 15, "v1beta1": 13, "v1alpha2": 12}),
    "node.k8s.io": (16300, {"v1": 15, "v1beta1": 9, "v1alpha1": 1}),
    "discovery.k8s.io": (16200, {"v1": 15, "v1beta1": 12}),
    "resource.k8s.io": (16200, {"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}),
    "flowcontrol.apiserver.k8s.io": (16100, {"v1": 21, "v1beta3": 18, "v1beta2": 15, "v1beta1": 12, "v1alpha1": 9}),
    "internal.apiserver.k8s.io": (16000, {"v1alpha1": 9}),
    "storagemigration.k8s.io": (15800, {"v1beta1": 9}),
    "metrics.k8s.io": (100, {"v1beta1": 100}),
    "testing.pilothouse.dev": (50, {"v1alpha1": 15}),
}
"""Each group's place among groups, and the places of its versions; what is greater comes first."""

API_VERSION_PRIORITIES: Priorities = {
    GroupVersion(group, version): APIServicePriority(group_priority, version_priority)
    for group, (group_priority, versions) in _GROUPS.items()
    for version, version_priority in versions.items()
}
