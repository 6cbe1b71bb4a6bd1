"""Nodes as a resource: names, selectable fields and columns."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Cell, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.core.nodes.strategy import NodeStatusStrategy, NodeStrategy
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.machinery.objects import Json, items, labels_of, part, text

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_INFO = "io.k8s.api.core.v1.NodeSystemInfo"
_STATUS = "io.k8s.api.core.v1.NodeStatus"


def _status(node: Json) -> str:
    conditions = {each.get("type"): each.get("status") for each in items(node, "status", "conditions")}
    ready = {None: "Unknown", "True": "Ready"}.get(conditions.get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if part(node, "spec").get("unschedulable") else ready


def _roles(node: Json) -> str:
    labels = labels_of(node)
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL) or "")
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(kind: str) -> Cell:
    def cell(node: Json) -> str:
        found = (each.get("address") or "" for each in items(node, "status", "addresses") if each.get("type") == kind)
        return next(found, "<none>")

    return cell


def _info(field: str) -> Cell:
    return lambda node: text(node, "status", "nodeInfo", field) or "<unknown>"


def _kernel(node: Json) -> str:
    version, architecture = _info("kernelVersion")(node), text(node, "status", "nodeInfo", "architecture")
    return f"{version} ({architecture})" if architecture else str(version)


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
