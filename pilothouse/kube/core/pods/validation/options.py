"""Options of pod validation. Updates tolerate faults of the stored pod."""

from __future__ import annotations

from dataclasses import field

from pilothouse.apiserver.server.features import enabled, per_gates
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PodValidationOptions:
    """The defaults are for a new pod template with the current feature gates."""

    resource_is_pod: bool = False
    """The object is a pod, not a template."""
    allow_invalid_deletion_cost: bool = field(default_factory=lambda: not enabled("PodDeletionCost"))
    allow_invalid_selector_values: bool = False
    allow_invalid_node_affinity_values: bool = False
    allow_invalid_topology_spread_selector: bool = False
    allow_legacy_match_label_keys: bool = field(
        default_factory=lambda: not enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge")
    )
    allow_indivisible_huge_pages: bool = False
    allow_non_local_token_path: bool = False
    allow_namespaced_sysctls_on_host: bool = False
    allow_any_selinux_change_policy: bool = field(default_factory=lambda: enabled("SELinuxMount"))
    allow_restart_container_for_init: bool = False
    allow_user_namespaces_with_devices: bool = False
    allow_user_namespaces_on_host_network: bool = field(
        default_factory=lambda: enabled("UserNamespacesHostNetworkSupport")
    )
    allow_comparing_tolerations: bool = field(default_factory=lambda: enabled("TaintTolerationComparisonOperators"))
    allow_empty_image_reference: bool = False
    allow_system_admin_without_escalation: bool = False
    allow_restart_all_containers: bool = field(default_factory=lambda: enabled("RestartAllContainersOnContainerExits"))


@per_gates
def new_template_options() -> PodValidationOptions:
    """Return the options for a new pod template."""
    return PodValidationOptions()


@per_gates
def new_pod_options() -> PodValidationOptions:
    """Return the options for a new pod."""
    return PodValidationOptions(resource_is_pod=True)
