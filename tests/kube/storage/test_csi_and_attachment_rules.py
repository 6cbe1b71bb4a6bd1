"""CSI drivers, the nodes they run on, the room they have, and attachments of volumes."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.storage.csidrivers import CSI_DRIVERS
from pilothouse.kube.storage.csinodes import CSI_NODES
from pilothouse.kube.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS, VolumeAttachmentStatusStrategy
from pilothouse.machinery.objects import Json


def named(spec: Json | None = None, **fields: Any) -> Json:
    return {"metadata": {"name": "x"}, "spec": spec or {}, **fields}


def test_a_driver_attaches_and_its_volumes_persist_by_default() -> None:
    assert decoded(CSI_DRIVERS, named())["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        (
            {"fsGroupPolicy": "Odd"},
            [
                'spec.fsGroupPolicy: Unsupported value: "Odd": '
                'supported values: "File", "None", "ReadWriteOnceWithFSType"'
            ],
        ),
        (
            {"volumeLifecycleModes": ["Odd"]},
            ['spec.volumeLifecycleModes: Unsupported value: "Odd": supported values: "Persistent", "Ephemeral"'],
        ),
        (
            {"tokenRequests": [{"audience": "a", "expirationSeconds": 1}, {"audience": "a"}]},
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: "
                "may not specify a duration less than 10 minutes",
                'spec.tokenRequests[1].audience: Duplicate value: "a"',
            ],
        ),
        (
            {"nodeAllocatableUpdatePeriodSeconds": 9, "serviceAccountTokenInSecrets": True},
            [
                "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: "
                "must be greater than or equal to 10 seconds",
                "spec.serviceAccountTokenInSecrets: Invalid value: true: "
                "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_driver_is_named(spec: Json, refused: list[str]) -> None:
    assert refusals(CSI_DRIVERS, named(spec)) == refused


def test_a_driver_never_changes_whether_it_attaches() -> None:
    found = update_refusals(CSI_DRIVERS, named({"attachRequired": False}), named())
    assert found == ["spec.attachedRequired: Invalid value: false: field is immutable"]


def test_the_generation_of_a_driver_counts_its_changes() -> None:
    old, new = decoded(CSI_DRIVERS, named()), decoded(CSI_DRIVERS, named({"podInfoOnMount": True}))
    CSI_DRIVERS.strategy.prepare_for_update(new, old)
    assert new["metadata"]["generation"] == 1


def test_what_a_driver_is_called_on_a_node_stays_while_it_is_there() -> None:
    old = named({"drivers": [{"name": "d.example.com", "nodeID": "1", "topologyKeys": None}]})
    grown = named({"drivers": [{"name": "d.example.com", "nodeID": "1", "allocatable": {"count": 3}}]})
    assert update_refusals(CSI_NODES, grown, old) == []
    moved = named({"drivers": [{"name": "d.example.com", "nodeID": "2"}]})
    (found,) = update_refusals(CSI_NODES, moved, old)
    assert found.startswith('spec.drivers: Invalid value: {"Name":"d.example.com","NodeID":"2","TopologyKeys":null')
    assert update_refusals(CSI_NODES, named({"drivers": []}), old) == []


def test_a_node_id_is_not_too_long() -> None:
    (found,) = refusals(CSI_NODES, named({"drivers": [{"name": "d", "nodeID": "x" * 257}]}))
    assert found.endswith("must be 256 characters or less")


def test_a_capacity_is_for_one_class_and_one_part_of_the_cluster() -> None:
    base: Json = {"metadata": {"name": "c"}, "storageClassName": "s", "capacity": "1Gi"}
    assert refusals(CSI_STORAGE_CAPACITIES, base) == []
    assert refusals(CSI_STORAGE_CAPACITIES, base | {"capacity": "-1"}) == [
        'capacity: Invalid value: "-1": must be greater than or equal to 0'
    ]
    moved = base | {"storageClassName": "t", "nodeTopology": {"matchLabels": {"a": "b"}}}
    assert update_refusals(CSI_STORAGE_CAPACITIES, moved, base) == [
        'nodeTopology: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable',
        'storageClassName: Invalid value: "t": field is immutable',
    ]
    assert update_refusals(CSI_STORAGE_CAPACITIES, base | {"capacity": "2Gi"}, base) == []


ATTACHMENT: Json = {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
INLINE: Json = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        (
            {},
            ["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
        ),
        (
            {"persistentVolumeName": "pv", "inlineVolumeSpec": INLINE},
            ["spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
        ),
        ({"inlineVolumeSpec": INLINE}, []),
        (
            {"inlineVolumeSpec": INLINE | {"capacity": {"storage": "1"}, "volumeMode": "Block"}},
            [
                "spec.source.inlineVolumeSpec.capacity: Forbidden: "
                "may not be specified in the context of inline volumes",
                "spec.source.inlineVolumeSpec.volumeMode: Forbidden: "
                "may not specify volumeMode other than Filesystem in the context of inline volumes",
            ],
        ),
    ],
)
def test_an_attachment_is_of_one_volume(source: Json, refused: list[str]) -> None:
    assert refusals(VOLUME_ATTACHMENTS, named(ATTACHMENT | {"source": source})) == refused


def test_an_attachment_begins_detached_and_its_spec_stays() -> None:
    made = decoded(VOLUME_ATTACHMENTS, named(ATTACHMENT, status={"attached": True}))
    VOLUME_ATTACHMENTS.strategy.prepare_for_create(made)
    assert made["status"] == {"attached": False}
    (found,) = update_refusals(VOLUME_ATTACHMENTS, named(ATTACHMENT | {"nodeName": "m"}), named(ATTACHMENT))
    assert found == (
        'spec: Invalid value: {"Attacher":"d.example.com","Source":{"PersistentVolumeName":"pv",'
        '"InlineVolumeSpec":null},"NodeName":"m"}: field is immutable'
    )


def test_the_status_of_an_attachment_does_not_change_its_labels() -> None:
    old = decoded(VOLUME_ATTACHMENTS, named(ATTACHMENT))
    new = decoded(VOLUME_ATTACHMENTS, named({}, status={"attached": True}))
    new["metadata"]["labels"] = {"a": "b"}
    VolumeAttachmentStatusStrategy().prepare_for_update(new, old)
    assert "labels" not in new["metadata"]
    assert new["spec"] == old["spec"]


def test_errors_of_attaching_are_short() -> None:
    error = {"message": "x" * 1025, "errorCode": -1}
    made = decoded(VOLUME_ATTACHMENTS, named(ATTACHMENT, status={"attached": False, "attachError": error}))
    assert [str(each) for each in VOLUME_ATTACHMENTS.strategy.validate(made)] == [
        "status.attachError.message: Too long: may not be more than 262144 bytes",
        "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    ]
