"""CSINodes: CSI drivers on a node, with their node ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.validation.network_volumes import validate_csi_driver_name
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.kube.storage.storageclasses import GROUP
from pilothouse.kube.strategy import KubeStrategy, SeparateStatusStrategy, StatusSubresource, drop_disabled, gated
from pilothouse.kube.validation.fields import nonnegative, qualified_name
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.version_rules import holds

_STATUS_FIELDS = (gated("CSIVolumeHealth", "storageHealth"),)
_MAX_NODE_ID = 256
_DRIVERS = root("spec", "drivers")


class CSINodeStrategy(KubeStrategy):
    namespaced = False
    allow_unconditional_update = False

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        drivers = items(obj, "spec", "drivers")
        names: set[str] = set()
        for position, driver in enumerate(drivers):
            path, name = _DRIVERS.index(position), text(driver, "name")
            yield from validate_csi_driver_name(name, path.child("name"))
            node_id = text(driver, "nodeID")
            node_id_path = path.child("nodeID")
            if not node_id:
                yield required(node_id_path)
            if len(node_id.encode()) > _MAX_NODE_ID:
                yield invalid(node_id_path, node_id, f"must be {_MAX_NODE_ID} characters or less")
            yield from nonnegative(part(driver, "allocatable").get("count") or 0, path.child("allocatable", "count"))
            if name in names:
                yield duplicate(path.child("name"), name)
            names.add(name)
            yield from _validate_topology_keys(items(driver, "topologyKeys"), path)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate(obj)
        drivers = {text(driver, "name"): driver for driver in items(obj, "spec", "drivers")}
        for before in items(old, "spec", "drivers"):
            if driver := drivers.get(text(before, "name")):
                counts = enabled("MutableCSINodeAllocatableCount")
                new, stored = _fixed(driver, mutable_count=counts), _fixed(before, mutable_count=counts)
                yield from validate_immutable_field(new, stored, _DRIVERS)


def _fixed(driver: Json, *, mutable_count: bool) -> Json:
    """Return the immutable fields of a driver as upstream's messages print them."""
    allocatable = driver.get("allocatable")
    return {
        "Name": text(driver, "name"),
        "NodeID": text(driver, "nodeID"),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None if mutable_count or not allocatable else {"Count": allocatable.get("count")},
    }


def _validate_topology_keys(keys: Sequence[str], path: Path) -> Errors:
    """Errors stand under the driver, not under the key: upstream's choice."""
    for position, key in enumerate(keys):
        if not key:
            yield required(path)
        if key in keys[:position]:
            yield duplicate(path, key)
        yield from qualified_name(key, path)


CSI_NODES = Resource(
    names=Names("csinodes", kind="CSINode"),
    strategy=CSINodeStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[
        NAME,
        Column(
            "Drivers",
            lambda obj: len(items(obj, "spec", "drivers")),
            type="integer",
            description="Drivers indicates the number of CSI drivers registered on the node",
        ),
        AGE,
    ],
)


class CSINodeWithStatusStrategy(CSINodeStrategy, SeparateStatusStrategy):
    """CSINodes of releases in which they have a status."""


class CSINodeStatusStrategy(StatusSubresource, CSINodeWithStatusStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled(part(obj, "status"), part(old, "status"), _STATUS_FIELDS)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)


_WITH_STATUS = replace(CSI_NODES, strategy=CSINodeWithStatusStrategy(), status=CSINodeStatusStrategy())


def served_csi_nodes(registries: Registries) -> list[ServedResource]:
    return with_status(registries.open(_WITH_STATUS if holds("CSINodeStatus") else CSI_NODES))
