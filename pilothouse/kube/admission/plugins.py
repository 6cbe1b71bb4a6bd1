"""The admission plugins of the built-in groups, in the order in which they run."""

from __future__ import annotations

from collections.abc import Collection

from pilothouse.apiserver.admission.interface import Plugin
from pilothouse.apiserver.admission.namespace_lifecycle import NamespaceLifecycle, NamespacePhase
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.kube.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from pilothouse.kube.admission.claim_resize import PersistentVolumeClaimResize
from pilothouse.kube.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from pilothouse.kube.admission.default_toleration_seconds import DefaultTolerationSeconds
from pilothouse.kube.admission.limit_ranger import LimitRanger
from pilothouse.kube.admission.node_taints import TaintNodesByCondition
from pilothouse.kube.admission.pod_resize import PodResizeValidator
from pilothouse.kube.admission.pod_topology_labels import PodTopologyLabels
from pilothouse.kube.admission.podsecurity.plugin import NamespaceLabels, PodSecurity
from pilothouse.kube.admission.priority import Priority
from pilothouse.kube.admission.priority_classes import StoredPriorityClasses
from pilothouse.kube.admission.resource_quota import ResourceQuota
from pilothouse.kube.admission.runtime_class import RuntimeClass
from pilothouse.kube.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from pilothouse.kube.admission.stored_objects import StoredObjects
from pilothouse.kube.admission.stored_quotas import StoredQuotas
from pilothouse.kube.core.limitranges import LIMIT_RANGES
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS
from pilothouse.kube.networking.ingress_classes import INGRESS_CLASSES
from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES
from pilothouse.kube.served import Registries
from pilothouse.kube.storage.storageclasses import STORAGE_CLASSES


def admission_plugins(
    registries: Registries,
    *,
    namespace_phase: NamespacePhase,
    namespace_labels: NamespaceLabels,
    authorizer: Authorizer,
    enabled: Collection[str],
) -> list[Plugin]:
    """Those of the plugins that are enabled, by name."""
    storage_classes = StoredObjects(registries.open(STORAGE_CLASSES))
    nodes = StoredObjects(registries.open(NODES))
    plugins: list[Plugin] = [
        NamespaceLifecycle(namespace_phase),
        LimitRanger(StoredObjects(registries.open(LIMIT_RANGES)).list),
        TaintNodesByCondition(),
        PodSecurity(namespace_labels, StoredObjects(registries.open(PODS)).list),
        Priority(StoredPriorityClasses(registries.open(PRIORITY_CLASSES))),
        DefaultTolerationSeconds(),
        DefaultStorageClass(storage_classes.list),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(storage_classes.get),
        RuntimeClass(StoredObjects(registries.open(RUNTIME_CLASSES)).get),
        CertificateApproval(authorizer),
        CertificateSigning(authorizer),
        CertificateSubjectRestriction(),
        DefaultIngressClass(StoredObjects(registries.open(INGRESS_CLASSES)).list),
        PodTopologyLabels(nodes.get),
        PodResizeValidator(nodes.get),
        ResourceQuota(StoredQuotas(registries.open(RESOURCE_QUOTAS))),
    ]
    return [plugin for plugin in plugins if plugin.name in enabled]
