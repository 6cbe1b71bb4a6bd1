"""What persistent volumes may say, and that their source never changes."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.persistentvolumes.resource import (
    PERSISTENT_VOLUMES,
    PersistentVolumeStatusStrategy,
    access_modes,
)
from pilothouse.machinery.objects import Json

STRATEGY = PERSISTENT_VOLUMES.strategy
BASE: Json = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
LOCAL_AFFINITY = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}


def volume(annotations: Json | None = None, **spec: Any) -> Json:
    chosen = BASE | spec
    if not any(isinstance(value, dict) for name, value in spec.items() if name not in ("capacity", "nodeAffinity")):
        chosen = {"hostPath": {"path": "/data"}} | chosen
    return {"metadata": {"name": "pv", "annotations": annotations or {}}, "spec": chosen}


def test_default_volume_is_retained_and_has_a_file_system() -> None:
    made = decoded(PERSISTENT_VOLUMES, volume())
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["spec"]["hostPath"] == {"path": "/data", "type": ""}
    assert made["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("source", "filled"),
    [
        ({"rbd": {"monitors": ["m"], "image": "i"}}, {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ({"iscsi": {"targetPortal": "p", "iqn": "iqn.2020-01.a:b", "lun": 0}}, {"iscsiInterface": "default"}),
        ({"azureDisk": {"diskName": "d", "diskURI": "https://u"}}, {"kind": "Shared", "cachingMode": "ReadWrite"}),
        ({"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v"}}, {"fsType": "xfs"}),
    ],
)
def test_sources_get_their_defaults(source: Json, filled: Json) -> None:
    (name,) = source
    assert decoded(PERSISTENT_VOLUMES, volume(**source))["spec"][name].items() >= filled.items()


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"accessModes": []}, ["spec.accessModes: Required value"]),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        (
            {"capacity": {"storage": "1", "cpu": "1"}},
            ['spec.capacity: Unsupported value: {"cpu":"1","storage":"1"}: supported values: "storage"'],
        ),
        ({"capacity": {"storage": "0"}}, ['spec.capacity[storage]: Invalid value: "0": must be greater than zero']),
        (
            {"hostPath": {"path": "/a/.."}, "persistentVolumeReclaimPolicy": "Recycle"},
            [
                "spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
            ],
        ),
        (
            {"hostPath": {"path": "/"}, "nfs": {"server": "s", "path": "/p"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        ({"local": {"path": "/p"}}, ["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        ({"local": {"path": "/p"}, "nodeAffinity": LOCAL_AFFINITY}, []),
        (
            {"nodeAffinity": {}},
            ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
        ),
        (
            {"csi": {"driver": "d", "controllerExpandSecretRef": {"name": "s"}}},
            [
                "spec.csi.volumeHandle: Required value",
                "spec.csi.controllerExpandSecretRef.namespace: Required value",
            ],
        ),
        (
            {"volumeAttributesClassName": "c"},
            ["spec.csi: Required value: has to be specified when using volumeAttributesClassName"],
        ),
        (
            {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}},
            [
                'spec.glusterfs.endpointsNamespace: Invalid value: "": '
                "if the endpointnamespace is set, it must be a valid namespace name"
            ],
        ),
        (
            {"iscsi": {"targetPortal": "p", "iqn": "odd", "lun": 300, "initiatorName": "odd", "secretRef": {}}},
            [
                'spec.iscsi.iqn: Invalid value: "odd": must be valid format',
                "spec.iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
                "spec.iscsi.secretRef.name: Required value",
                'spec.iscsi.initiatorname: Invalid value: "odd": must be valid format',
            ],
        ),
        (
            {"azureFile": {"secretName": "s", "shareName": "s", "secretNamespace": ""}},
            ["spec.azureFile.secretNamespace: Required value"],
        ),
        (
            {"cinder": {"volumeID": "v", "secretRef": {"name": "n"}}},
            ["spec.cinder.secretRef.namespace: Required value"],
        ),
    ],
)
def test_invalid_volume_is_rejected_with_exact_errors(spec: Json, refused: list[str]) -> None:
    assert refusals(PERSISTENT_VOLUMES, volume(**spec)) == refused


def test_a_volume_needs_a_source() -> None:
    assert refusals(PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": BASE}) == [
        "spec: Required value: must specify a volume type"
    ]


def test_mount_options_in_an_annotation_are_only_for_volumes_that_are_mounted() -> None:
    options = {"volume.beta.kubernetes.io/mount-options": "ro"}
    assert refusals(PERSISTENT_VOLUMES, volume(options)) == [
        "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: "
        "may not specify mount options for this volume type"
    ]
    assert refusals(PERSISTENT_VOLUMES, volume(options, nfs={"server": "s", "path": "/p"})) == []


def test_the_source_of_a_volume_never_changes() -> None:
    found = update_refusals(PERSISTENT_VOLUMES, volume(hostPath={"path": "/b"}), volume(hostPath={"path": "/a"}))
    assert len(found) == 1
    assert found[0].startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
    )
    assert '-  "Path": "/a",' in found[0]
    assert '+  "Path": "/b",' in found[0]


def test_a_secret_for_expansion_may_be_added_later() -> None:
    csi = {"driver": "d", "volumeHandle": "h"}
    secret = {"controllerExpandSecretRef": {"name": "s", "namespace": "n"}}
    assert update_refusals(PERSISTENT_VOLUMES, volume(csi=csi | secret), volume(csi=csi)) == []
    assert len(update_refusals(PERSISTENT_VOLUMES, volume(csi=csi), volume(csi=csi | secret))) == 1


def _affinity(key: str) -> Json:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]}}


def test_the_node_affinity_may_only_move_to_the_newer_name_of_a_label() -> None:
    old = volume(nodeAffinity=_affinity("beta.kubernetes.io/os"))
    assert update_refusals(PERSISTENT_VOLUMES, volume(nodeAffinity=_affinity("kubernetes.io/os")), old) == []
    found = update_refusals(PERSISTENT_VOLUMES, volume(nodeAffinity=_affinity("other")), old)
    assert len(found) == 1
    assert found[0].endswith("field is immutable, except for updating from beta label to GA")
    assert update_refusals(PERSISTENT_VOLUMES, old, volume()) == []


def test_phase_change_sets_the_transition_time() -> None:
    status = PersistentVolumeStatusStrategy()
    old = decoded(PERSISTENT_VOLUMES, volume()) | {"status": {"phase": "Bound", "lastPhaseTransitionTime": "t"}}
    same = decoded(PERSISTENT_VOLUMES, volume()) | {"status": {"phase": "Bound"}}
    status.prepare_for_update(same, old)
    assert same["status"]["lastPhaseTransitionTime"] == "t"
    moved = decoded(PERSISTENT_VOLUMES, volume()) | {"status": {"phase": "Released", "lastPhaseTransitionTime": "t"}}
    status.prepare_for_update(moved, old)
    assert moved["status"]["lastPhaseTransitionTime"] > "2024"
    own = decoded(PERSISTENT_VOLUMES, volume()) | {"status": {"phase": "Failed", "lastPhaseTransitionTime": "own"}}
    status.prepare_for_update(own, old)
    assert own["status"]["lastPhaseTransitionTime"] == "own"


def test_deprecated_fields_yield_warnings() -> None:
    obj = decoded(PERSISTENT_VOLUMES, volume(persistentVolumeReclaimPolicy="Recycle", nodeAffinity=_affinity("a")))
    assert [line.split(":")[0] for line in STRATEGY.warnings_on_create(obj)] == ["spec.persistentVolumeReclaimPolicy"]
    old = decoded(PERSISTENT_VOLUMES, volume(nodeAffinity=_affinity("beta.kubernetes.io/arch")))
    assert list(STRATEGY.warnings_on_create(old)) == [
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is "
        'deprecated since v1.14; use "kubernetes.io/arch" instead'
    ]


def test_access_modes_are_abbreviated_and_sorted() -> None:
    assert access_modes(["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"]) == "RWO,RWX"
