"""What claims may say, where their data comes from, and how little of them may change."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from pilothouse.kube.core.persistentvolumeclaims import PersistentVolumeClaimStatusStrategy
from pilothouse.machinery.objects import Json

PVC = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "other"}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
POPULATOR = {"apiGroup": "example.com", "kind": "Thing", "name": "t"}


def claim(size: str = "1Gi", status: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"name": "c", "annotations": annotations or {}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
        "status": status or {},
    }


def created(**spec: Any) -> Json:
    made = decoded(CLAIMS, claim(**spec))
    CLAIMS.strategy.prepare_for_create(made)
    spec_made: Json = made["spec"]
    return spec_made


def test_a_claim_is_pending_and_wants_a_file_system() -> None:
    made = decoded(CLAIMS, claim())
    assert (made["status"]["phase"], made["spec"]["volumeMode"]) == ("Pending", "Filesystem")


def test_the_two_fields_for_a_data_source_are_kept_alike() -> None:
    assert created(dataSource=PVC)["dataSourceRef"] == PVC
    assert created(dataSourceRef=POPULATOR)["dataSource"] == POPULATOR


def test_data_source_drops_unsupported_kinds() -> None:
    assert "dataSource" not in created(dataSource=POPULATOR)
    assert created(dataSource=SNAPSHOT)["dataSource"] == SNAPSHOT


def test_sources_in_other_namespaces_are_dropped() -> None:
    assert "dataSourceRef" not in created(dataSourceRef=PVC | {"namespace": "elsewhere"})


def test_claim_requires_access_modes_and_storage() -> None:
    assert refusals(CLAIMS, {"metadata": {"name": "c"}, "spec": {}}) == [
        "spec.accessModes: Required value: at least 1 access mode is required",
        "spec.resources[storage]: Required value",
    ]


IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [
        (claim(volumeName="v"), claim(), True),
        (claim(volumeName="w"), claim(volumeName="v"), False),
        (claim(storageClassName="a"), claim(), True),
        (claim(storageClassName="b"), claim(storageClassName="a"), False),
        (claim("2Gi"), claim("1Gi"), False),
        (claim("2Gi"), claim("1Gi", {"phase": "Bound"}), True),
        (claim(volumeAttributesClassName="b"), claim(volumeAttributesClassName="a"), False),
        (claim(volumeAttributesClassName="b"), claim("1Gi", {"phase": "Bound"}), True),
    ],
)
def test_only_some_of_a_claim_may_change(new: Json, old: Json, allowed: bool) -> None:
    found = update_refusals(CLAIMS, new, old)
    assert (found == []) is allowed
    assert allowed or found[0].startswith(f"spec: Forbidden: {IMMUTABLE}\n")


def test_rejection_shows_the_diff() -> None:
    (found,) = update_refusals(CLAIMS, claim(storageClassName="b"), claim(storageClassName="a"))
    assert '- "StorageClassName": "a",' in found
    assert '+ "StorageClassName": "b",' in found


def test_a_class_may_move_from_the_annotation_to_the_field() -> None:
    old = claim(annotations={"volume.beta.kubernetes.io/storage-class": "a"})
    assert update_refusals(CLAIMS, claim(storageClassName="a"), old) == []
    found = update_refusals(CLAIMS, claim(annotations={"volume.beta.kubernetes.io/storage-class": "b"}), old)
    assert found == [
        'metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "b": field is immutable'
    ]


def test_a_claim_shrinks_only_down_to_what_it_has() -> None:
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert update_refusals(CLAIMS, claim("2Gi"), claim("3Gi", bound)) == []
    assert update_refusals(CLAIMS, claim("1Gi"), claim("3Gi", bound)) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


def test_volume_mode_is_immutable() -> None:
    found = update_refusals(CLAIMS, claim(volumeMode="Block"), claim())
    assert found[-1] == 'volumeMode: Invalid value: "Block": field is immutable'


def test_applied_attributes_class_cannot_be_removed() -> None:
    old = claim(status={"phase": "Bound", "currentVolumeAttributesClassName": "a"}, volumeAttributesClassName="a")
    assert update_refusals(CLAIMS, claim(), old) == [
        "spec.volumeAttributesClassName: Forbidden: "
        "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
    ]


def test_the_status_of_an_expansion_is_checked() -> None:
    status = {
        "capacity": {"storage": "-1"},
        "allocatedResourceStatuses": {"cpu": "Odd"},
        "allocatedResources": {"storage": "-2", "example.com/x": "1"},
    }
    obj = decoded(CLAIMS, claim(status=status))
    obj["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    found = [str(error) for error in PersistentVolumeClaimStatusStrategy().validate_update(obj, obj)]
    assert found == [
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"',
        'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: '
        '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", '
        '"NodeResizeInfeasible", "NodeResizePending"',
        "status.allocatedResources[storage]: Invalid value: -2: must be a valid resource quantity",
    ]


def test_fractional_bytes_yield_a_warning() -> None:
    made = decoded(CLAIMS, claim("1500m"))
    assert list(CLAIMS.strategy.warnings_on_create(made)) == [
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    ]


def test_table_hides_the_capacity_of_an_unbound_claim() -> None:
    status = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"]}
    cells = {column.name: column.cell for column in CLAIMS.columns}
    unbound, bound = claim(status=status), claim(status=status, volumeName="v")
    assert (cells["Capacity"](unbound), cells["Access Modes"](unbound)) == ("", "")
    assert (cells["Capacity"](bound), cells["Access Modes"](bound)) == ("1Gi", "ROX")
