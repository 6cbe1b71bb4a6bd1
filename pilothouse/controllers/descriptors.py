"""The controllers that run inside the server, and which of them a `--controllers` list enables.

Adding a controller is adding its line to CONTROLLERS. Its module must have `async def run(context: ControllerContext)`,
which works until it is cancelled, or returns when there is nothing for it to do. The module is imported only when the
controller starts, and one that says what concerns it starts with the first such object: a server that has no
deployments runs no deployment controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.controllers.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INGRESSES,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SERVICE_CIDRS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_ATTRIBUTES_CLASSES,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource

ALL, NONE = "*", "-*"


@dataclass(frozen=True, slots=True)
class ControllerDescriptor:
    """Names, aliases and service accounts are kube-controller-manager's."""

    name: str
    module: str
    alias: str = ""
    on_by_default: bool = True
    """Whether `*` stands for it, too."""
    with_simulation: bool = False
    """Whether `*` stands for it only where there are simulated nodes: it plays what a cloud does elsewhere."""
    service_account: str = ""
    """Its account in kube-system, as which it acts; with none it acts as the program itself."""
    has_every_right: bool = False
    """For one that Kubernetes has no role for."""
    concerns: tuple[GroupVersionResource, ...] = ()
    """The resources whose first object starts it; with none it starts at once."""
    package: str = "pilothouse.controllers"
    """Where its module is."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)


CONTROLLERS = (
    ControllerDescriptor(
        "bootstrap-signer-controller",
        "bootstrap.signer",
        "bootstrapsigner",
        service_account="bootstrap-signer",
        on_by_default=False,
    ),
    ControllerDescriptor(
        "certificatesigningrequest-approving-controller",
        "certificates.approver",
        "csrapproving",
        service_account="certificate-controller",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-cleaner-controller",
        "certificates.cleaner",
        "csrcleaner",
        service_account="certificate-controller",
    ),
    ControllerDescriptor(
        "certificatesigningrequest-signing-controller",
        "certificates.signer",
        "csrsigning",
        service_account="certificate-controller",
    ),
    ControllerDescriptor(
        "clusterrole-aggregation-controller",
        "clusterroleaggregation.controller",
        "clusterrole-aggregation",
        service_account="clusterrole-aggregation-controller",
    ),
    ControllerDescriptor(
        "cronjob-controller",
        "cronjob.controller",
        "cronjob",
        service_account="cronjob-controller",
        concerns=(CRON_JOBS,),
    ),
    ControllerDescriptor(
        "daemonset-controller",
        "daemon.controller",
        "daemonset",
        service_account="daemon-set-controller",
        concerns=(DAEMON_SETS,),
    ),
    ControllerDescriptor(
        "deployment-controller",
        "deployment.controller",
        "deployment",
        service_account="deployment-controller",
        concerns=(DEPLOYMENTS,),
    ),
    ControllerDescriptor(
        "disruption-controller",
        "disruption.controller",
        "disruption",
        service_account="disruption-controller",
    ),
    ControllerDescriptor(
        "endpoints-controller",
        "endpoint.controller",
        "endpoint",
        service_account="endpoint-controller",
    ),
    ControllerDescriptor(
        "endpointslice-controller",
        "endpointslice.controller",
        "endpointslice",
        service_account="endpointslice-controller",
    ),
    ControllerDescriptor(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring.controller",
        "endpointslicemirroring",
        service_account="endpointslicemirroring-controller",
    ),
    ControllerDescriptor(
        "ephemeral-volume-controller",
        "volume.ephemeral",
        "ephemeral-volume",
        service_account="ephemeral-volume-controller",
        concerns=(PODS,),
    ),
    ControllerDescriptor(
        "garbage-collector-controller",
        "garbagecollector.controller",
        "garbagecollector",
        service_account="generic-garbage-collector",
    ),
    ControllerDescriptor(
        "horizontal-pod-autoscaler-controller",
        "podautoscaler.controller",
        "horizontalpodautoscaling",
        service_account="horizontal-pod-autoscaler",
        concerns=(HORIZONTAL_POD_AUTOSCALERS,),
    ),
    ControllerDescriptor(
        "job-controller",
        "job.controller",
        "job",
        service_account="job-controller",
        concerns=(JOBS, PODS),
    ),
    ControllerDescriptor(
        "legacy-serviceaccount-token-cleaner-controller",
        "serviceaccount.legacy_token_cleaner",
        "legacy-service-account-token-cleaner",
        service_account="legacy-service-account-token-cleaner",
    ),
    ControllerDescriptor(
        "namespace-controller",
        "namespace.controller",
        "namespace",
        service_account="namespace-controller",
    ),
    ControllerDescriptor(
        "node-ipam-controller",
        "nodeipam.controller",
        "nodeipam",
        service_account="node-controller",
        concerns=(NODES,),
    ),
    ControllerDescriptor(
        "node-lifecycle-controller",
        "nodelifecycle.controller",
        "nodelifecycle",
        service_account="node-controller",
        concerns=(NODES,),
    ),
    ControllerDescriptor(
        "persistentvolume-binder-controller",
        "volume.persistentvolume.controller",
        "persistentvolume-binder",
        service_account="persistent-volume-binder",
        concerns=(PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
    ),
    ControllerDescriptor(
        "persistentvolume-expander-controller",
        "volume.expand",
        "persistentvolume-expander",
        service_account="expand-controller",
        concerns=(PERSISTENT_VOLUME_CLAIMS,),
    ),
    ControllerDescriptor(
        "persistentvolume-protection-controller",
        "volume.pv_protection",
        "pv-protection",
        service_account="pv-protection-controller",
    ),
    ControllerDescriptor(
        "persistentvolumeclaim-protection-controller",
        "volume.pvc_protection",
        "pvc-protection",
        service_account="pvc-protection-controller",
    ),
    ControllerDescriptor(
        "pod-garbage-collector-controller",
        "podgc.controller",
        "podgc",
        service_account="pod-garbage-collector",
    ),
    ControllerDescriptor(
        "replicaset-controller",
        "replicaset.controller",
        "replicaset",
        service_account="replicaset-controller",
        concerns=(REPLICA_SETS,),
    ),
    ControllerDescriptor(
        "replicationcontroller-controller",
        "replication.controller",
        "replicationcontroller",
        service_account="replication-controller",
        concerns=(REPLICATION_CONTROLLERS,),
    ),
    ControllerDescriptor(
        "resourceclaim-controller",
        "resourceclaim.controller",
        "resource-claim-controller",
        service_account="resource-claim-controller",
        concerns=(RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES),
    ),
    ControllerDescriptor(
        "resourcequota-controller",
        "resourcequota.controller",
        "resourcequota",
        service_account="resourcequota-controller",
    ),
    ControllerDescriptor(
        "root-ca-certificate-publisher-controller",
        "certificates.root_ca_publisher",
        "root-ca-cert-publisher",
        service_account="root-ca-cert-publisher",
    ),
    ControllerDescriptor(
        "service-cidr-controller",
        "servicecidrs.controller",
        service_account="service-cidrs-controller",
        concerns=(SERVICE_CIDRS,),
    ),
    ControllerDescriptor(
        "service-lb-controller",
        "loadbalancer.services",
        "service",
        service_account="service-controller",
        with_simulation=True,
        concerns=(SERVICES,),
    ),
    ControllerDescriptor(
        "serviceaccount-controller",
        "serviceaccount.controller",
        "serviceaccount",
        service_account="service-account-controller",
    ),
    ControllerDescriptor(
        "serviceaccount-token-controller",
        "serviceaccount.tokens_controller",
        "serviceaccount-token",
    ),
    ControllerDescriptor(
        "simulated-ingress-controller",
        "loadbalancer.ingresses",
        with_simulation=True,
        has_every_right=True,
        concerns=(INGRESSES,),
    ),
    ControllerDescriptor(
        "statefulset-controller",
        "statefulset.controller",
        "statefulset",
        service_account="statefulset-controller",
        concerns=(STATEFUL_SETS,),
    ),
    ControllerDescriptor(
        "taint-eviction-controller",
        "tainteviction.controller",
        service_account="node-controller",
        concerns=(NODES,),
    ),
    ControllerDescriptor(
        "token-cleaner-controller",
        "bootstrap.token_cleaner",
        "tokencleaner",
        service_account="token-cleaner",
        on_by_default=False,
    ),
    ControllerDescriptor(
        "ttl-after-finished-controller",
        "ttlafterfinished.controller",
        "ttl-after-finished",
        service_account="ttl-after-finished-controller",
    ),
    ControllerDescriptor(
        "ttl-controller",
        "ttl.controller",
        "ttl",
        service_account="ttl-controller",
        concerns=(NODES,),
    ),
    ControllerDescriptor(
        "validatingadmissionpolicy-status-controller",
        "validatingadmissionpolicystatus.controller",
        service_account="validatingadmissionpolicy-status-controller",
    ),
    ControllerDescriptor(
        "volumeattributesclass-protection-controller",
        "volume.vac_protection",
        service_account="volumeattributesclass-protection-controller",
        concerns=(VOLUME_ATTRIBUTES_CLASSES,),
    ),
)
"""By name."""


def enabled(choice: Sequence[str], *, simulation: bool = False) -> list[ControllerDescriptor]:
    """`*` stands for all that are on by default, `-*` for none, `foo` and `-foo` for one, which goes before those.

    `simulation`: whether there are simulated nodes.
    """
    return [each for each in CONTROLLERS if _is_enabled(each, choice, simulation)]


def unknown(choice: Sequence[str]) -> Iterator[str]:
    """The names in the list that no controller has."""
    known = {name for each in CONTROLLERS for name in each.names}
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
