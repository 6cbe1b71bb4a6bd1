"""The built-in controllers, by name.

To add a controller, add a line to CONTROLLERS. Its module must define `async def run(context: ControllerContext)`,
which runs until cancelled, or returns if there is nothing to do. The module is imported when the controller starts. A
controller with `concerns` starts with the first object of these resources: a server without deployments runs no
deployment controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pilothouse.controllers import resources
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource

ALL, NONE = "*", "-*"


@dataclass(frozen=True, slots=True)
class ControllerDescriptor:
    """Description of a controller. Names, aliases and service accounts are kube-controller-manager's."""

    name: str
    module: str
    alias: str = ""
    on_by_default: bool = True
    """Whether `*` includes the controller."""
    with_simulation: bool = False
    """Whether `*` includes the controller only with simulated nodes, where it stands in for a cloud provider."""
    account: str = ""
    """Service account in kube-system; empty = the server's own identity."""
    has_every_right: bool = False
    """Whether the controller acts with full privileges, because Kubernetes defines no role for it."""
    feature: str = ""
    """Feature gate that must be enabled for this controller and its resource."""
    concerns: tuple[GroupVersionResource, ...] = ()
    """Resources whose first object starts the controller; empty = starts at once."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)


CONTROLLERS = (
    ControllerDescriptor(
        "bootstrap-signer-controller",
        "bootstrap.signer",
        alias="bootstrapsigner",
        account="bootstrap-signer",
        on_by_default=False,
    ),
    ControllerDescriptor(
        "certificatesigningrequest-approving-controller",
        "certificates.approver",
        alias="csrapproving",
        account="certificate-controller",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-cleaner-controller",
        "certificates.cleaner",
        alias="csrcleaner",
        account="certificate-controller",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-signing-controller",
        "certificates.signer",
        alias="csrsigning",
        account="certificate-controller",
    ),
    ControllerDescriptor(
        "clusterrole-aggregation-controller",
        "clusterroleaggregation",
        alias="clusterrole-aggregation",
        account="clusterrole-aggregation-controller",
    ),
    ControllerDescriptor(
        "cronjob-controller",
        "cronjob.controller",
        alias="cronjob",
        account="cronjob-controller",
        concerns=(resources.CRON_JOBS,),
    ),
    ControllerDescriptor(
        "daemonset-controller",
        "daemon.controller",
        alias="daemonset",
        account="daemon-set-controller",
        concerns=(resources.DAEMON_SETS,),
    ),
    ControllerDescriptor(
        "deployment-controller",
        "deployment.controller",
        alias="deployment",
        account="deployment-controller",
        concerns=(resources.DEPLOYMENTS,),
    ),
    ControllerDescriptor(
        "disruption-controller", "disruption.controller", alias="disruption", account="disruption-controller"
    ),
    ControllerDescriptor(
        "endpoints-controller", "endpoint.controller", alias="endpoint", account="endpoint-controller"
    ),
    ControllerDescriptor(
        "endpointslice-controller",
        "endpointslice.controller",
        alias="endpointslice",
        account="endpointslice-controller",
    ),
    ControllerDescriptor(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring.controller",
        alias="endpointslicemirroring",
        account="endpointslicemirroring-controller",
    ),
    ControllerDescriptor(
        "ephemeral-volume-controller",
        "volume.ephemeral",
        alias="ephemeral-volume",
        account="ephemeral-volume-controller",
        concerns=(resources.PODS,),
    ),
    ControllerDescriptor(
        "garbage-collector-controller",
        "garbagecollector.controller",
        alias="garbagecollector",
        account="generic-garbage-collector",
    ),
    ControllerDescriptor(
        "horizontal-pod-autoscaler-controller",
        "podautoscaler.controller",
        alias="horizontalpodautoscaling",
        account="horizontal-pod-autoscaler",
        concerns=(resources.HORIZONTAL_POD_AUTOSCALERS,),
    ),
    ControllerDescriptor(
        "job-controller",
        "job.controller",
        alias="job",
        account="job-controller",
        concerns=(resources.JOBS, resources.PODS),
    ),
    ControllerDescriptor(
        "legacy-serviceaccount-token-cleaner-controller",
        "serviceaccount.legacy_token_cleaner",
        alias="legacy-service-account-token-cleaner",
        account="legacy-service-account-token-cleaner",
    ),
    ControllerDescriptor(
        "namespace-controller", "namespace.controller", alias="namespace", account="namespace-controller"
    ),
    ControllerDescriptor(
        "node-ipam-controller",
        "nodeipam.controller",
        alias="nodeipam",
        account="node-controller",
        concerns=(resources.NODES,),
    ),
    ControllerDescriptor(
        "node-lifecycle-controller",
        "nodelifecycle.controller",
        alias="nodelifecycle",
        account="node-controller",
        concerns=(resources.NODES,),
    ),
    ControllerDescriptor(
        "persistentvolume-binder-controller",
        "volume.persistentvolume.controller",
        alias="persistentvolume-binder",
        account="persistent-volume-binder",
        concerns=(resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES),
    ),
    ControllerDescriptor(
        "persistentvolume-expander-controller",
        "volume.expand",
        alias="persistentvolume-expander",
        account="expand-controller",
        concerns=(resources.PERSISTENT_VOLUME_CLAIMS,),
    ),
    ControllerDescriptor(
        "persistentvolume-protection-controller",
        "volume.pv_protection",
        alias="pv-protection",
        account="pv-protection-controller",
    ),
    ControllerDescriptor(
        "persistentvolumeclaim-protection-controller",
        "volume.pvc_protection",
        alias="pvc-protection",
        account="pvc-protection-controller",
    ),
    ControllerDescriptor("pod-garbage-collector-controller", "podgc", alias="podgc", account="pod-garbage-collector"),
    ControllerDescriptor(
        "replicaset-controller",
        "replicaset.controller",
        alias="replicaset",
        account="replicaset-controller",
        concerns=(resources.REPLICA_SETS,),
    ),
    ControllerDescriptor(
        "replicationcontroller-controller",
        "replication",
        alias="replicationcontroller",
        account="replication-controller",
        concerns=(resources.REPLICATION_CONTROLLERS,),
    ),
    ControllerDescriptor(
        "resourceclaim-controller",
        "resourceclaim.controller",
        alias="resource-claim-controller",
        account="resource-claim-controller",
        concerns=(resources.RESOURCE_CLAIMS, resources.RESOURCE_CLAIM_TEMPLATES),
    ),
    ControllerDescriptor(
        "resourcequota-controller",
        "resourcequota.controller",
        alias="resourcequota",
        account="resourcequota-controller",
    ),
    ControllerDescriptor(
        "root-ca-certificate-publisher-controller",
        "certificates.root_ca_publisher",
        alias="root-ca-cert-publisher",
        account="root-ca-cert-publisher",
    ),
    ControllerDescriptor(
        "service-cidr-controller",
        "servicecidrs",
        account="service-cidrs-controller",
        concerns=(resources.SERVICE_CIDRS,),
    ),
    ControllerDescriptor(
        "service-lb-controller",
        "loadbalancer.services",
        alias="service",
        account="service-controller",
        with_simulation=True,
        concerns=(resources.SERVICES,),
    ),
    ControllerDescriptor(
        "serviceaccount-controller",
        "serviceaccount.controller",
        alias="serviceaccount",
        account="service-account-controller",
    ),
    ControllerDescriptor(
        "serviceaccount-token-controller", "serviceaccount.tokens_controller", alias="serviceaccount-token"
    ),
    ControllerDescriptor(
        "simulated-ingress-controller",
        "loadbalancer.ingresses",
        with_simulation=True,
        has_every_right=True,
        concerns=(resources.INGRESSES,),
    ),
    ControllerDescriptor(
        "statefulset-controller",
        "statefulset.controller",
        alias="statefulset",
        account="statefulset-controller",
        concerns=(resources.STATEFUL_SETS,),
    ),
    ControllerDescriptor(
        "storage-version-migrator-controller",
        "storageversionmigrator",
        alias="svm",
        account="storage-version-migrator-controller",
        feature="StorageVersionMigrator",
        concerns=(resources.STORAGE_VERSION_MIGRATIONS,),
    ),
    ControllerDescriptor(
        "taint-eviction-controller", "tainteviction", account="node-controller", concerns=(resources.NODES,)
    ),
    ControllerDescriptor(
        "token-cleaner-controller",
        "bootstrap.token_cleaner",
        alias="tokencleaner",
        account="token-cleaner",
        on_by_default=False,
    ),
    ControllerDescriptor(
        "ttl-after-finished-controller",
        "ttlafterfinished",
        alias="ttl-after-finished",
        account="ttl-after-finished-controller",
    ),
    ControllerDescriptor("ttl-controller", "ttl", alias="ttl", account="ttl-controller", concerns=(resources.NODES,)),
    ControllerDescriptor(
        "validatingadmissionpolicy-status-controller",
        "validatingadmissionpolicystatus",
        account="validatingadmissionpolicy-status-controller",
    ),
    ControllerDescriptor(
        "volumeattributesclass-protection-controller",
        "volume.vac_protection",
        account="volumeattributesclass-protection-controller",
        concerns=(resources.VOLUME_ATTRIBUTES_CLASSES,),
    ),
)


def enabled(
    choice: Sequence[str], *, simulation: bool = False, has_feature: Callable[[str], bool] = lambda name: False
) -> list[ControllerDescriptor]:
    """Return the enabled controllers. `*` enables all defaults, `-*` disables all; `foo` and `-foo` take precedence.

    `simulation` tells whether nodes are simulated; `has_feature` tests a feature gate.
    """
    wanted = [controller for controller in CONTROLLERS if _is_enabled(controller, choice, simulation)]
    return [descriptor for descriptor in wanted if not descriptor.feature or has_feature(descriptor.feature)]


def unknown(choice: Sequence[str]) -> Iterator[str]:
    """Yield names in the list that match no controller."""
    known = {name for controller in CONTROLLERS for name in controller.names}
    for entry in choice:
        name = entry.removeprefix("-")
        if entry not in (ALL, NONE) and name not in known:
            yield name


def _is_enabled(descriptor: ControllerDescriptor, choice: Sequence[str], simulation: bool) -> bool:
    for entry in choice:
        if entry.removeprefix("-") in descriptor.names:
            return not entry.startswith("-")
    by_default = next((entry for entry in choice if entry in (ALL, NONE)), NONE)
    return by_default == ALL and descriptor.on_by_default and (simulation or not descriptor.with_simulation)
