"""Rules that changed between Kubernetes releases without a feature gate.

Each rule is a row of RULES: its name, the minor versions that have it, and the upstream change. Code that follows a
rule asks `holds("name")`. Rules with a gate are rows of the feature gates instead. No other module compares versions.
"""

from __future__ import annotations

from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class VersionRule:
    name: str
    change: str
    """The change in upstream, as a statement about versions that have the rule."""
    since: int = 0
    """First minor version with the rule; 0 for all older versions."""
    until: int = 0
    """First minor version without the rule; 0 if no version has dropped it."""

    def holds_in(self, minor: int) -> bool:
        return self.since <= minor and not (self.until and minor >= self.until)


RULES = {
    rule.name: rule
    for rule in (
        VersionRule(
            "AlignedMessages",
            "messages of autoscalers, priority levels, RuntimeClasses, StorageClasses, VolumeAttachments are aligned: "
            "missing values are required, unchangeable fields are immutable",
            since=36,
        ),
        VersionRule(
            "AllFailuresOfPolicies",
            "the audit annotation of failed admission policies lists the failures of all bindings, 50 at most",
            since=37,
        ),
        VersionRule(
            "AnyUserOfContainerStatuses",
            "user ids of container statuses reach 4294967295",
            since=37,
        ),
        VersionRule(
            "ArchitectureOfKernels",
            "tables of nodes show the architecture beside the kernel version",
            since=36,
        ),
        VersionRule(
            "BindingNodeNames",
            "bindings to invalid names of nodes are rejected",
            since=37,
        ),
        VersionRule(
            "CSINodeStatus",
            "CSINodes have a status and its subresource",
            since=37,
        ),
        VersionRule(
            "CompletedUpdatesOnDelete",
            "StatefulSets with the strategy OnDelete make the update revision current once all pods have it",
            since=37,
        ),
        VersionRule(
            "DeclaredValidation",
            "checks that upstream's types declare are reported last, once, and in the words of declarations",
            since=37,
        ),
        VersionRule(
            "DefinitionColumns",
            "tables of CustomResourceDefinitions show scope, versions, names and whether they are established",
            since=37,
        ),
        VersionRule(
            "DevicesOfPodStatuses",
            "writes of a pod's status without fields of devices keep these fields; extended resources have health",
            since=37,
        ),
        VersionRule(
            "EvictionCauses",
            "evictions that a broken budget refuses have a cause",
            since=37,
        ),
        VersionRule(
            "FeatureGateDependencies",
            "an enabled feature gate whose dependencies are disabled stops the start",
            since=35,
        ),
        VersionRule(
            "HostFieldsOfPodSpecs",
            "internal pod specs, which messages print, have the host fields of pods themselves, and another order",
            since=37,
        ),
        VersionRule(
            "ImagesOfTemplates",
            "image volumes of pod templates need a reference, unless the stored template has none",
            since=37,
        ),
        VersionRule(
            "IndexedOwnerReferences",
            "errors of owner references name the index of the reference; empty fields are required values",
            since=37,
        ),
        VersionRule(
            "ItemDefaultsInOpenAPI",
            "OpenAPI v3 declares zero values as defaults of list items and map values",
            until=37,
        ),
        VersionRule(
            "KeptPrivileges",
            "updates may keep CAP_SYS_ADMIN beside allowPrivilegeEscalation: false",
            since=37,
        ),
        VersionRule(
            "LoopbackCertificateCheck",
            "/healthz and /livez have the check loopback-serving-certificate",
            since=36,
        ),
        VersionRule(
            "MinCompatibilityVersionFlag",
            "--min-compatibility-version exists",
            since=35,
        ),
        VersionRule(
            "OwnKindsInOpenAPI",
            "OpenAPI v3 lists DeleteOptions and WatchEvent with the kinds of the document's own group only",
            since=36,
        ),
        VersionRule(
            "NumericFormats",
            "formats of integers and numbers in schemas of definitions limit their values",
            since=36,
        ),
        VersionRule(
            "PotentialNodes",
            "messages about a successful preemption name the node and the number of victims",
            since=37,
        ),
        VersionRule(
            "PromptAutoscalers",
            "new autoscalers are reconciled at once, not after a period",
            since=37,
        ),
        VersionRule(
            "PoolsOfSlices",
            "ResourceSlices can be selected by the field spec.pool.name",
            since=37,
        ),
        VersionRule(
            "PatchesAreDecodedFirst",
            "a patch that is not JSON or YAML is rejected before the object is read, in other words",
            since=37,
        ),
        VersionRule(
            "StableStorageVersionMigrations",
            "the storage version migrator follows storagemigration.k8s.io/v1",
            since=37,
        ),
        VersionRule(
            "ResizesBesideClaims",
            "containers with resource claims can be resized",
            since=37,
        ),
        VersionRule(
            "ScheduledByFeatures",
            "pods are scheduled to nodes that declare the features of the pods",
            since=36,
        ),
        VersionRule(
            "SignersOfNodes",
            "NodeRestriction checks the signer of PodCertificateRequests; the message about the audience of a token "
            "no longer mentions volumes",
            since=37,
        ),
        VersionRule(
            "SizeOfVolumeErrors",
            "the message about a long error of a VolumeAttachment names the limit of errors, 1024 bytes",
            since=37,
        ),
        VersionRule(
            "TLSCurvePreferencesFlag",
            "--tls-curve-preferences exists",
            since=36,
        ),
        VersionRule(
            "WipedMetadata",
            "updates and applies that create an object ignore the system fields of its metadata, as creates do",
            since=37,
        ),
    )
}


def in_versions(versions: str) -> bool:
    """Return whether data marked with versions applies to this process: `1.36+`, `1.35-` (and older) or `1.36`."""
    minor = int(versions.rstrip("+-").removeprefix("1."))
    current = release.current().minor
    return (
        current >= minor if versions.endswith("+") else current <= minor if versions.endswith("-") else current == minor
    )


def holds(name: str) -> bool:
    """Return whether the release of this process has a rule. Raises KeyError for an unknown rule."""
    return RULES[name].holds_in(release.current().minor)
