"""Volumes of a pod on a candidate node: bound volumes, matching free volumes, or volumes to provision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.kinds.node_affinity import NodeSelector
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, name_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.plugins.handle import Listers
from pilothouse.scheduler.plugins.volumes.pod_claims import AssumedObjects, PodClaims

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """Volume work required if the pod gets the node."""

    bindings: tuple[tuple[Json, Json], ...] = ()
    """(volume, claim) pairs to bind."""
    provisions: tuple[Json, ...] = ()
    """Claims whose volume must be provisioned for the node."""


class NodeConflict(PilothouseError):
    """The node does not suit the pod's volumes; the message is the reason."""


def find_volumes(claims: PodClaims, node: NodeInfo, volumes: AssumedObjects, listers: Listers) -> PodVolumes:
    """Return the volume work for the node. Raises NodeConflict."""
    for claim in claims.bound:
        volume = volumes.get(claim["spec"]["volumeName"])
        if volume is None:
            raise NodeConflict(VOLUME_GONE)
        if not is_reachable(volume, node):
            raise NodeConflict(WRONG_NODE)
    if any(annotations_of(claim).get(matching.SELECTED_NODE, node.name) != node.name for claim in claims.waiting):
        raise NodeConflict(NO_VOLUME)
    undecided = [claim for claim in claims.waiting if matching.SELECTED_NODE not in annotations_of(claim)]
    bindings = _matches(undecided, node, volumes) if undecided else ()
    matched = {name_of(claim) for _, claim in bindings}
    provisions = tuple(claim for claim in claims.waiting if name_of(claim) not in matched)
    for claim in provisions:
        storage_class = listers.storage_classes.get_by_key(matching.class_of_claim(claim))
        if storage_class is None or (storage_class.get("provisioner") or "") in _NO_PROVISIONER:
            raise NodeConflict(NO_VOLUME)
        topologies = storage_class.get("allowedTopologies") or ()

        def matches(term: Json) -> bool:
            expressions = term.get("matchLabelExpressions") or ()
            return bool(expressions) and all(
                node.labels.get(expression["key"]) in expression["values"] for expression in expressions
            )

        if not (not topologies or any(map(matches, topologies))):
            raise NodeConflict(NO_VOLUME)
        if not _has_space(claim, storage_class, node, listers):
            raise NodeConflict(NO_SPACE)
    return PodVolumes(bindings, provisions)


def is_reachable(volume: Json, node: NodeInfo) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or NodeSelector.read(required).matches(node.node or {})


def _matches(claims: Sequence[Json], node: NodeInfo, volumes: AssumedObjects) -> tuple[tuple[Json, Json], ...]:
    """Match claims with free volumes; smaller claims choose first."""
    matches: list[tuple[Json, Json]] = []
    for claim in sorted(claims, key=matching.requested_size):
        taken = {name_of(volume) for volume, _ in matches}
        volume = _match(claim, [volume for volume in volumes if name_of(volume) not in taken], node)
        if volume is not None:
            matches.append((volume, claim))
    return tuple(matches)


def _match(claim: Json, volumes: Iterable[Json], node: NodeInfo) -> Json | None:
    """Return the best volume for the claim. A claim with reserved volumes gets a reserved volume or none."""
    volumes = list(volumes)
    reserved = [volume for volume in volumes if matching.is_bound_to(volume, claim)]
    return matching.best_match(
        claim, [volume for volume in reserved or volumes if is_reachable(volume, node)], delayed=False
    )


def _has_space(claim: Json, storage_class: Json, node: NodeInfo, listers: Listers) -> bool:
    """Return whether the driver has capacity; drivers without capacity tracking always have."""
    driver = listers.csi_drivers.get_by_key(storage_class["provisioner"])
    if driver is None or not driver["spec"].get("storageCapacity"):
        return True
    size = matching.requested_size(claim)

    def is_enough(capacity: Json) -> bool:
        most = matching.storage_in({"storage": capacity.get("maximumVolumeSize") or capacity.get("capacity") or 0})
        topology = from_label_selector(capacity.get("nodeTopology"))
        same_class = capacity.get("storageClassName") == name_of(storage_class)
        return bool(same_class and most >= size and topology.matches(node.labels))

    return any(map(is_enough, listers.csi_storage_capacities.list()))
