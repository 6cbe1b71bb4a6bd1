"""Admission: which plug-ins look at a write before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.kube.admission.config import DEFAULT_TOLERATION_SECONDS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import flag
from pilothouse.machinery.flags.values import INT, STRING, STRINGS

DEFAULT_ON = frozenset({
    "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "ClusterTrustBundleAttest",
    "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "JobValidation", "LimitRanger",
    "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeDeclaredFeatureValidator",
    "PersistentVolumeClaimResize", "PodGroupProtection", "PodGroupWorkloadExists", "PodResizeValidator", "PodSecurity",
    "PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection",
    "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
})  # fmt: skip
"""Kubernetes v1.36 runs these unless told otherwise."""

DEFAULT_OFF = frozenset({
    "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "DenyServiceExternalIPs", "EventRateLimit",
    "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision",
    "NamespaceExists", "NodeRestriction", "OwnerReferencesPermissionEnforcement", "PodNodeSelector",
    "PodTolerationRestriction",
})  # fmt: skip


@dataclass(frozen=True)
class AdmissionOptions:
    title: ClassVar[str] = "admission"

    enable: tuple[str, ...] = flag(
        "enable-admission-plugins", STRINGS, (), "Plug-ins to run besides those that run by default."
    )
    disable: tuple[str, ...] = flag(
        "disable-admission-plugins", STRINGS, (), "Plug-ins that run by default and now shall not."
    )

    config_file: str = flag(
        "admission-control-config-file", STRING, "", "File with an AdmissionConfiguration, for plug-ins that need one."
    )
    not_ready_toleration_seconds: int = flag(
        "default-not-ready-toleration-seconds",
        INT,
        DEFAULT_TOLERATION_SECONDS,
        "How long pods stay on a node that is not ready, unless they say it themselves.",
    )
    unreachable_toleration_seconds: int = flag(
        "default-unreachable-toleration-seconds",
        INT,
        DEFAULT_TOLERATION_SECONDS,
        "How long pods stay on a node that cannot be reached, unless they say it themselves.",
    )

    @property
    def enabled(self) -> frozenset[str]:
        return (DEFAULT_ON | frozenset(self.enable)) - frozenset(self.disable)

    def validate(self) -> Iterator[str]:
        yield from missing_files({"admission-control-config-file": self.config_file})
        known = DEFAULT_ON | DEFAULT_OFF
        for name in self.enable:
            if name not in known:
                yield f'enable-admission-plugins plugin "{name}" is unknown'
        for name in self.disable:
            if name not in known:
                yield f'disable-admission-plugins plugin "{name}" is unknown'
        for name in sorted(set(self.enable) & set(self.disable)):
            yield f'"{name}" in enable-admission-plugins and disable-admission-plugins overlapped'
