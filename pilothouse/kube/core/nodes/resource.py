"""Nodes: strategy, selectable fields and columns. A client that creates a node may set the status, as kubelets do."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Cell, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.core.nodes.validation import validate_node, validate_node_update
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.kube.strategy import KubeStrategy, drop_disabled, gated
from pilothouse.kube.validation.addresses import warnings_for_cidr
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json, items, labels_of, part, text

_GATED_FIELDS = (
    gated("NodeDeclaredFeatures", "status.declaredFeatures"),
    gated("InPlacePodVerticalScalingSchedulerPreemption", "spec.podPreemptionPolicy"),
)
_GATED_STATUS_FIELDS = (gated("KubeletInUserNamespace", "status.nodeInfo.runningInUserNamespace"),)


class NodeStrategy(KubeStrategy):
    namespaced = False
    reset_fields = ("status",)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        # podCIDR is the first of podCIDRs. If they differ, podCIDR wins.
        cidr, cidrs = spec.get("podCIDR"), spec.get("podCIDRs")
        if cidr and (not cidrs or cidrs[0] != cidr):
            spec["podCIDRs"] = [cidr]
        elif cidrs:
            spec["podCIDR"] = cidrs[0]
        status = obj["status"]
        # Empty maps are stored as absent, and defaulted when the object is read.
        if not status.get("allocatable") and status.get("capacity") is not None:
            status["allocatable"] = dict(status["capacity"])
        round_up(status.get("capacity"))
        round_up(status.get("allocatable"))

    def prepare_for_create(self, obj: Json) -> None:
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)
        drop_disabled(obj, None, _GATED_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        drop_disabled(obj, old, _GATED_FIELDS)
        if part(old, "spec").get("configSource") is None:
            obj["spec"].pop("configSource", None)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_node(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        yield from validate_node_update(obj, old)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return _warnings(obj)


class NodeStatusStrategy(NodeStrategy):
    reset_fields = ("spec",)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        if part(old, "status").get("config") is None:
            obj["status"].pop("config", None)
        drop_disabled(obj, old, _GATED_STATUS_FIELDS)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_node_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def _warnings(obj: Json) -> Iterable[str]:
    spec = part(obj, "spec")
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for position, cidr in enumerate(items(spec, "podCIDRs")):
        yield from warnings_for_cidr(cidr, root("spec", "podCIDRs").index(position))


_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_INFO = "io.k8s.api.core.v1.NodeSystemInfo"
_STATUS = "io.k8s.api.core.v1.NodeStatus"


def _status(node: Json) -> str:
    conditions = {condition.get("type"): condition.get("status") for condition in items(node, "status", "conditions")}
    ready = {None: "Unknown", "True": "Ready"}.get(conditions.get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if part(node, "spec").get("unschedulable") else ready


def _roles(node: Json) -> str:
    labels = labels_of(node)
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL) or "")
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(kind: str) -> Cell:
    def cell(node: Json) -> str:
        addresses = (
            address.get("address") or ""
            for address in items(node, "status", "addresses")
            if address.get("type") == kind
        )
        return next(addresses, "<none>")

    return cell


def _info(field: str) -> Cell:
    return lambda node: text(node, "status", "nodeInfo", field) or "<unknown>"


def _kernel(node: Json) -> str:
    version, architecture = _info("kernelVersion")(node), text(node, "status", "nodeInfo", "architecture")
    shows_architecture = architecture and version_rules.holds("ArchitectureOfKernels")
    return f"{version} ({architecture})" if shows_architecture else str(version)


def _fields(node: Json) -> Fields:
    unschedulable = "true" if part(node, "spec").get("unschedulable") else "false"
    return cluster_metadata_fields(node) | {"spec.unschedulable": unschedulable}


NODES = Resource(
    names=Names("nodes", kind="Node", short=["no"]),
    strategy=NodeStrategy(),
    storage_path="minions",
    fields=_fields,
    columns=[
        NAME,
        Column("Status", _status, description="The status of the node"),
        Column("Roles", _roles, description="The roles of the node"),
        AGE,
        Column(
            "Version",
            lambda node: text(node, "status", "nodeInfo", "kubeletVersion"),
            documented=(_INFO, "kubeletVersion"),
        ),
        Column("Internal-IP", _address("InternalIP"), priority=1, documented=(_STATUS, "addresses")),
        Column("External-IP", _address("ExternalIP"), priority=1, documented=(_STATUS, "addresses")),
        Column("OS-Image", _info("osImage"), priority=1, documented=(_INFO, "osImage")),
        Column("Kernel-Version", _kernel, priority=1, documented=(_INFO, "kernelVersion")),
        Column(
            "Container-Runtime",
            _info("containerRuntimeVersion"),
            priority=1,
            documented=(_INFO, "containerRuntimeVersion"),
        ),
    ],
)


def node_storages(registries: Registries) -> list[ServedResource]:
    return with_status(registries.open(NODES), NodeStatusStrategy())
