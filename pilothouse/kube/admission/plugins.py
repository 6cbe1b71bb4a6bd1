"""The table of admission plugins, in upstream's order of execution.

Flags, reference page and validation of plugin names are derived from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pilothouse.apiserver.admission.interface import Plugin
from pilothouse.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from pilothouse.apiserver.admission.policy.plugin import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pilothouse.apiserver.admission.webhook.mutating import MutatingAdmissionWebhook
from pilothouse.apiserver.admission.webhook.validating import ValidatingAdmissionWebhook
from pilothouse.kube.admission.always import AlwaysAdmit, AlwaysDeny
from pilothouse.kube.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from pilothouse.kube.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from pilothouse.kube.admission.deny_service_external_ips import DenyServiceExternalIPs
from pilothouse.kube.admission.event_rate_limit import EventRateLimit
from pilothouse.kube.admission.images import AlwaysPullImages, ImagePolicyConfig, ImagePolicyWebhook
from pilothouse.kube.admission.job_validation import JobValidation
from pilothouse.kube.admission.limit_ranger import LimitRanger
from pilothouse.kube.admission.namespace_existence import NamespaceAutoProvision, NamespaceExists
from pilothouse.kube.admission.owner_references import OwnerReferencesPermissionEnforcement, mapped_resources
from pilothouse.kube.admission.plugin_parts import PluginParts
from pilothouse.kube.admission.pod_groups import PodGroupProtection, PodGroupWorkloadExists
from pilothouse.kube.admission.pod_placement import LimitPodHardAntiAffinityTopology, PodNodeSelector, PodTopologyLabels
from pilothouse.kube.admission.pod_resize import NodeDeclaredFeatureValidator, PodResizeValidator
from pilothouse.kube.admission.podsecurity.plugin import PodSecurity
from pilothouse.kube.admission.podsecurity.policy import Configuration as PodSecurityConfiguration
from pilothouse.kube.admission.priority import Priority, StoredPriorityClasses
from pilothouse.kube.admission.quota.plugin import ResourceQuota, StoredQuotas
from pilothouse.kube.admission.runtime_class import RuntimeClass
from pilothouse.kube.admission.service_account import ServiceAccount
from pilothouse.kube.admission.tolerations import (
    DefaultTolerationSeconds,
    ExtendedResourceToleration,
    PodTolerationRestriction,
    TaintNodesByCondition,
)
from pilothouse.kube.admission.volumes import PersistentVolumeClaimResize, StorageObjectInUseProtection
from pilothouse.kube.admissionregistration import policy_bindings, webhook_configurations
from pilothouse.kube.admissionregistration.policies import MUTATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICIES
from pilothouse.kube.core.limitranges import LIMIT_RANGES
from pilothouse.kube.core.namespaces import NAMESPACES
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from pilothouse.kube.core.persistentvolumes.resource import PERSISTENT_VOLUMES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS, ResourceQuotaStatusStrategy
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.networking.ingress_classes import INGRESS_CLASSES
from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.kube.resource.device_classes import DEVICE_CLASSES
from pilothouse.kube.scheduling.pod_groups import POD_GROUPS
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES
from pilothouse.kube.scheduling.workloads import WORKLOADS
from pilothouse.kube.served import tracked_access, tracked_status
from pilothouse.kube.storage.csidrivers import CSI_DRIVERS
from pilothouse.kube.storage.storageclasses import STORAGE_CLASSES
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.version_rules import in_versions


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    default_on: bool
    make: Callable[[PluginParts], Plugin] | None
    """None: the flags accept the name, and no plugin runs."""
    gate: str = ""
    """Feature gate that must be enabled for this plugin."""
    versions: str = ""
    """Kubernetes versions with this plugin, as `version_rules.in_versions` reads them; empty for all."""

    @property
    def exists(self) -> bool:
        return not self.versions or in_versions(self.versions)


def _image_policy(configuration: Json) -> Plugin:
    from pilothouse.client.rest.webhook import GenericWebhook  # brings an HTTP client

    config = ImagePolicyConfig.parse(configuration)
    return ImagePolicyWebhook(config, GenericWebhook.load(config.kubeconfig, initial_backoff=config.retry_backoff))


def _node_restriction(parts: PluginParts) -> Plugin:
    from pilothouse.kube.admission.node_restriction.credentials import NodePodCertificates, NodeTokens
    from pilothouse.kube.admission.node_restriction.plugin import NodeRestriction  # off by default
    from pilothouse.kube.admission.node_restriction.pods import NodePods

    pods, claims = parts.stored(PODS).get, parts.stored(PERSISTENT_VOLUME_CLAIMS).get
    volumes, drivers = parts.stored(PERSISTENT_VOLUMES).get, parts.stored(CSI_DRIVERS).get
    tokens = NodeTokens(parts.authorizer, pods, claims, volumes, drivers)
    nodes, accounts = parts.stored(NODES).get, parts.stored(SERVICE_ACCOUNTS).get
    certificates = NodePodCertificates(parts.authorizer, nodes, pods, accounts)
    return NodeRestriction(NodePods(pods=pods, nodes=nodes), tokens, certificates)


ON, OFF = True, False

PLUGINS = (
    Row("AlwaysAdmit", OFF, lambda parts: AlwaysAdmit()),
    Row(
        "NamespaceAutoProvision",
        OFF,
        lambda parts: NamespaceAutoProvision(
            parts.legacy.namespace_phase, tracked_access(parts.registries.open(NAMESPACES)).ensure
        ),
    ),
    Row("NamespaceLifecycle", ON, lambda parts: NamespaceLifecycle(parts.legacy.namespace_phase)),
    Row("NamespaceExists", OFF, lambda parts: NamespaceExists(parts.legacy.namespace_phase)),
    Row("LimitPodHardAntiAffinityTopology", OFF, lambda parts: LimitPodHardAntiAffinityTopology()),
    Row("LimitRanger", ON, lambda parts: LimitRanger(parts.stored(LIMIT_RANGES).list)),
    Row("ServiceAccount", ON, lambda parts: ServiceAccount(parts.service_account)),
    Row("NodeRestriction", OFF, _node_restriction),
    Row("TaintNodesByCondition", ON, lambda parts: TaintNodesByCondition()),
    Row("AlwaysPullImages", OFF, lambda parts: AlwaysPullImages()),
    Row("ImagePolicyWebhook", OFF, lambda parts: _image_policy(parts.configurations.get("ImagePolicyWebhook") or {})),
    Row(
        "PodSecurity",
        ON,
        lambda parts: PodSecurity(
            parts.legacy.namespace_labels,
            parts.stored(PODS).list,
            PodSecurityConfiguration.parse(parts.configurations.get("PodSecurity") or {}),
        ),
    ),
    Row(
        "PodNodeSelector",
        OFF,
        lambda parts: PodNodeSelector(parts.stored(NAMESPACES).get, parts.configurations.get("PodNodeSelector")),
    ),
    Row("Priority", ON, lambda parts: Priority(StoredPriorityClasses(parts.registries.open(PRIORITY_CLASSES)))),
    Row(
        "DefaultTolerationSeconds",
        ON,
        lambda parts: DefaultTolerationSeconds(
            not_ready=parts.config.not_ready_toleration_seconds, unreachable=parts.config.unreachable_toleration_seconds
        ),
    ),
    Row(
        "PodTolerationRestriction",
        OFF,
        lambda parts: PodTolerationRestriction(
            parts.stored(NAMESPACES).get, parts.configurations.get("PodTolerationRestriction")
        ),
    ),
    Row("EventRateLimit", OFF, lambda parts: EventRateLimit(parts.configurations.get("EventRateLimit") or {})),
    Row("ExtendedResourceToleration", OFF, lambda parts: ExtendedResourceToleration()),
    Row("DefaultStorageClass", ON, lambda parts: DefaultStorageClass(parts.stored(STORAGE_CLASSES).list)),
    Row("StorageObjectInUseProtection", ON, lambda parts: StorageObjectInUseProtection()),
    Row("PodGroupProtection", ON, lambda parts: PodGroupProtection(), gate="GenericWorkload", versions="1.36+"),
    Row(
        "OwnerReferencesPermissionEnforcement",
        OFF,
        lambda parts: OwnerReferencesPermissionEnforcement(
            parts.authorizer, lambda kind: mapped_resources(parts.groups(), kind)
        ),
    ),
    Row(
        "PersistentVolumeClaimResize", ON, lambda parts: PersistentVolumeClaimResize(parts.stored(STORAGE_CLASSES).get)
    ),
    Row("RuntimeClass", ON, lambda parts: RuntimeClass(parts.stored(RUNTIME_CLASSES).get)),
    Row("CertificateApproval", ON, lambda parts: CertificateApproval(parts.authorizer)),
    Row("CertificateSigning", ON, lambda parts: CertificateSigning(parts.authorizer)),
    Row(
        "ClusterTrustBundleAttest",
        ON,
        lambda parts: ClusterTrustBundleAttest(parts.authorizer),
        gate="ClusterTrustBundle",
    ),
    Row("CertificateSubjectRestriction", ON, lambda parts: CertificateSubjectRestriction()),
    Row("DefaultIngressClass", ON, lambda parts: DefaultIngressClass(parts.stored(INGRESS_CLASSES).list)),
    Row("DenyServiceExternalIPs", OFF, lambda parts: DenyServiceExternalIPs()),
    Row(
        "PodTopologyLabels",
        ON,
        lambda parts: PodTopologyLabels(parts.stored(NODES).get),
        gate="PodTopologyLabelsAdmission",
    ),
    Row(
        "PodGroupWorkloadExists",
        ON,
        lambda parts: PodGroupWorkloadExists(parts.stored(WORKLOADS).get),
        gate="GenericWorkload",
        versions="1.36",
    ),
    Row(
        "NodeDeclaredFeatureValidator",
        ON,
        lambda parts: NodeDeclaredFeatureValidator(parts.stored(NODES).get),
        versions="1.35+",
    ),
    Row(
        "JobValidation",
        ON,
        lambda parts: JobValidation(parts.stored(POD_GROUPS).get, parts.stored(POD_GROUPS).list),
        gate="GenericWorkload",
        versions="1.36",
    ),
    Row("PodResizeValidator", ON, lambda parts: PodResizeValidator(parts.stored(NODES).get), versions="1.36+"),
    Row(
        "MutatingAdmissionPolicy",
        ON,
        lambda parts: parts.policy_plugin(
            MutatingAdmissionPolicy, MUTATING_ADMISSION_POLICIES, policy_bindings.MUTATING_ADMISSION_POLICY_BINDINGS
        ),
        gate="MutatingAdmissionPolicy",
    ),
    Row(
        "MutatingAdmissionWebhook",
        ON,
        lambda parts: parts.webhook_plugin(
            MutatingAdmissionWebhook, webhook_configurations.MUTATING_WEBHOOK_CONFIGURATIONS
        ),
    ),
    Row(
        "ValidatingAdmissionPolicy",
        ON,
        lambda parts: parts.policy_plugin(
            ValidatingAdmissionPolicy,
            VALIDATING_ADMISSION_POLICIES,
            policy_bindings.VALIDATING_ADMISSION_POLICY_BINDINGS,
        ),
    ),
    Row(
        "ValidatingAdmissionWebhook",
        ON,
        lambda parts: parts.webhook_plugin(
            ValidatingAdmissionWebhook, webhook_configurations.VALIDATING_WEBHOOK_CONFIGURATIONS
        ),
    ),
    Row(
        "ResourceQuota",
        ON,
        lambda parts: ResourceQuota(
            StoredQuotas(tracked_status(parts.registries.open(RESOURCE_QUOTAS), ResourceQuotaStatusStrategy())),
            parts.stored(DEVICE_CLASSES),
        ),
    ),
    Row("AlwaysDeny", OFF, lambda parts: AlwaysDeny()),
)


def existing_plugins() -> list[Row]:
    """Return the rows of the Kubernetes version of this process."""
    return [row for row in PLUGINS if row.exists]


def admission_plugins(parts: PluginParts, enabled: Collection[str]) -> list[Plugin]:
    """Return the enabled plugins in the order of the table. Raise ValueError for an invalid plugin configuration."""
    features = parts.registries.features
    return [
        row.make(parts)
        for row in existing_plugins()
        if row.make and row.name in enabled and (not row.gate or features.enabled(row.gate))
    ]
