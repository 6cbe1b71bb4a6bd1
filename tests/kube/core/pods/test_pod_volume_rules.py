"""What volumes may say, source by source."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import errors_of, pod, with_volume

from pilothouse.kube.core.pods.validation.network_volumes import is_host_port
from pilothouse.machinery.objects import Json


def first(source: Json, **spec: Any) -> list[str]:
    return [error.removeprefix("volumes[0].") for error in errors_of(with_volume(source, **spec))]


GOOD: list[Json] = [
    {"emptyDir": {"sizeLimit": "1Gi"}},
    {"hostPath": {"path": "/a", "type": "Directory"}},
    {"gitRepo": {"repository": "r", "directory": "d"}},
    {"gcePersistentDisk": {"pdName": "p", "partition": 1}},
    {"awsElasticBlockStore": {"volumeID": "v"}},
    {"secret": {"secretName": "s", "items": [{"key": "k", "path": "a/b", "mode": 0o777}]}},
    {"nfs": {"server": "s", "path": "/p"}},
    {"iscsi": {"targetPortal": "p", "iqn": "iqn.2015-02.example.com:test", "lun": 1}},
    {"iscsi": {"targetPortal": "p", "iqn": "eui.0123456789ABCDEF", "lun": 1}},
    {"glusterfs": {"endpoints": "e", "path": "p"}},
    {"flocker": {"datasetName": "d"}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"rbd": {"monitors": ["m"], "image": "i"}},
    {"cinder": {"volumeID": "v"}},
    {"cephfs": {"monitors": ["m"]}},
    {"quobyte": {"registry": "a:1,[::1]:2", "volume": "v"}},
    {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    {"fc": {"targetWWNs": ["w"], "lun": 1}},
    {"fc": {"wwids": ["w"]}},
    {"flexVolume": {"driver": "d", "options": {"a.io/b": "c"}}},
    {"configMap": {"name": "c"}},
    {"azureFile": {"secretName": "s", "shareName": "n"}},
    {"vsphereVolume": {"volumePath": "p"}},
    {"photonPersistentDisk": {"pdID": "p"}},
    {"portworxVolume": {"volumeID": "v"}},
    {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}},
    {"storageos": {"volumeName": "v", "volumeNamespace": "n"}},
    {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}},
    {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}},
    {"csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "s"}}},
    {"image": {"reference": "r"}},
]


@pytest.mark.parametrize("source", GOOD, ids=lambda source: next(iter(source)))
def test_volumes_of_every_kind_are_accepted(source: Json) -> None:
    assert first(source) == []


BAD: list[tuple[Json, list[str]]] = [
    (
        {"emptyDir": {"sizeLimit": "-1"}},
        ["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
    ),
    ({"hostPath": {"path": ""}}, ["hostPath.path: Required value"]),
    (
        {"hostPath": {"path": "/a/../b", "type": "X"}},
        [
            "hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            'hostPath.type: Unsupported value: "X": supported values: "", "BlockDevice", "CharDevice", "Directory", '
            '"DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ],
    ),
    (
        {"gitRepo": {"repository": "", "directory": "/a"}},
        [
            "gitRepo.repository: Required value",
            'gitRepo.directory: Invalid value: "/a": must be a relative path',
        ],
    ),
    (
        {"gcePersistentDisk": {"pdName": "", "partition": 256}},
        [
            "persistentDisk.pdName: Required value",
            "persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
        ],
    ),
    (
        {"secret": {"defaultMode": 512, "items": [{"key": "", "path": "..a", "mode": -1}]}},
        [
            "secret.secretName: Required value",
            "secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            "secret.items[0].key: Required value",
            "secret.items[0].path: Invalid value: \"..a\": must not start with '..'",
            "secret.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
        ],
    ),
    (
        {"nfs": {"server": "", "path": "p"}},
        [
            "nfs.server: Required value",
            'nfs.path: Invalid value: "p": must be an absolute path',
        ],
    ),
    (
        {"iscsi": {"targetPortal": "", "iqn": "x", "lun": 256, "chapAuthSession": True, "initiatorName": "iqn.bad"}},
        [
            "iscsi.targetPortal: Required value",
            'iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
            "iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
            "iscsi.secretRef: Required value",
            'iscsi.initiatorname: Invalid value: "iqn.bad": must be valid format',
        ],
    ),
    (
        {
            "iscsi": {
                "targetPortal": "p" * 63,
                "iqn": "iqn.2015-02.example.com:test",
                "lun": 0,
                "initiatorName": "iqn.2015-02.example.com:init",
            }
        },
        [
            'name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be '
            "under 64 characters if "
            "iscsi.initiatorName is specified."
        ],
    ),
    (
        {"glusterfs": {"endpoints": "", "path": ""}},
        [
            "glusterfs.endpoints: Required value",
            "glusterfs.path: Required value",
        ],
    ),
    (
        {"flocker": {"datasetName": "a/b", "datasetUUID": "u"}},
        [
            'flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
            "flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
        ],
    ),
    ({"flocker": {}}, ["flocker: Required value: one of datasetName and datasetUUID is required"]),
    ({"persistentVolumeClaim": {"claimName": ""}}, ["persistentVolumeClaim.claimName: Required value"]),
    ({"rbd": {"monitors": [], "image": ""}}, ["rbd.monitors: Required value", "rbd.image: Required value"]),
    (
        {"cinder": {"volumeID": "", "secretRef": {}}},
        [
            "cinder.volumeID: Required value",
            "cinder.secretRef.name: Required value",
        ],
    ),
    (
        {"quobyte": {"registry": "a", "volume": ""}},
        [
            'quobyte.registry: Invalid value: "a": must be a host:port pair or multiple pairs separated by commas',
            "quobyte.volume: Required value",
        ],
    ),
    (
        {"quobyte": {"registry": "a:1", "volume": "v", "tenant": "t" * 65}},
        ["quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters"],
    ),
    (
        {"downwardAPI": {"items": [{"path": ""}]}},
        [
            "downwardAPI.path: Required value",
            "downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
        ],
    ),
    (
        {"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        ["downwardAPI.resourceFieldRef.containerName: Required value"],
    ),
    (
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]}},
        [
            'downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: '
            '"metadata.annotations", '
            '"metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"'
        ],
    ),
    ({"fc": {}}, ["fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"]),
    (
        {"fc": {"targetWWNs": ["w"], "wwids": ["i"]}},
        [
            'fc.targetWWNs: Invalid value: ["w"]: targetWWNs and wwids can not be specified simultaneously',
            "fc.lun: Required value: lun is required if targetWWNs is specified",
        ],
    ),
    (
        {"flexVolume": {"driver": "", "options": {"x.kubernetes.io/a": "b"}}},
        [
            "flexVolume.driver: Required value",
            'flexVolume.options[x.kubernetes.io/a]: Invalid value: "x.kubernetes.io/a": kubernetes.io and k8s.io '
            "namespaces are reserved",
        ],
    ),
    (
        {"azureDisk": {"diskName": "", "diskURI": "x", "cachingMode": "X", "kind": "Managed"}},
        [
            "azureDisk.diskName: Required value",
            'azureDisk.cachingMode: Unsupported value: "X": supported values: "None", "ReadOnly", "ReadWrite"',
            'azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/'
            '{group-name}/providers/microsoft.compute/disks/{disk-id}"',
        ],
    ),
    (
        {"azureDisk": {"diskName": "d", "diskURI": "x"}},
        [
            'azureDisk.diskURI: Unsupported value: "x": supported values: "https://{account-name}.blob.core.windows.net/'
            '{container-name}/{disk-name}.vhd"'
        ],
    ),
    (
        {"storageos": {"secretRef": {}}},
        [
            "storageos.volumeName: Required value",
            "storageos.secretRef.name: Required value",
        ],
    ),
    (
        {"csi": {"driver": "", "nodePublishSecretRef": {}}},
        [
            "csi.driver: Required value",
            "csi.nodePublishSecretRef.name: Required value",
        ],
    ),
    ({"csi": {"driver": "d" * 64}}, ["csi.driver: Too long: may not be more than 63 bytes"]),
    ({"ephemeral": {}}, ["ephemeral.volumeClaimTemplate: Required value"]),
    (
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "n"}, "spec": {}}}},
        [
            "ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
            "ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
            "ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ],
    ),
    (
        {"image": {"pullPolicy": "X"}},
        [
            "image.reference: Required value",
            'image.pullPolicy: Unsupported value: "X": supported values: "Always", "IfNotPresent", "Never"',
        ],
    ),
]


@pytest.mark.parametrize(("source", "errors"), BAD, ids=lambda value: next(iter(value)) if value else "")
def test_volumes_of_every_kind_must_be_well_formed(source: Json, errors: list[str]) -> None:
    assert first(source) == errors


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        ({"emptyDir": {}, "hostPath": {"path": "/"}}, "hostPath"),
        ({"emptyDir": {}, "cephfs": {"monitors": []}}, "cephFS"),
        ({"emptyDir": {}, "downwardAPI": {}}, "downwarAPI"),
        ({"secret": {"secretName": "s"}, "gcePersistentDisk": {"pdName": "p"}}, "secret"),
    ],
)
def test_a_volume_has_one_source(sources: Json, shown: str) -> None:
    assert first(sources) == [f"{shown}: Forbidden: may not specify more than 1 volume type"]


def test_volumes_have_names_of_their_own() -> None:
    assert errors_of(pod(volumes=[{"name": "a"}, {"name": "a"}, {"name": ""}])) == [
        'volumes[1].name: Duplicate value: "a"',
        "volumes[2].name: Required value",
    ]


CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}


def test_a_generated_claim_is_not_used_by_its_name() -> None:
    volumes = [
        {"name": "a", "ephemeral": {"volumeClaimTemplate": CLAIM}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "x-a"}},
    ]
    assert errors_of(pod(meta={"name": "x"}, volumes=volumes)) == [
        'volumes[1].persistentVolumeClaim.claimName: Invalid value: "x-a": '
        "must not reference a PVC that gets created for an ephemeral volume"
    ]


def test_name_of_a_generated_claim_must_be_valid() -> None:
    volume = {"name": "v" * 63, "ephemeral": {"volumeClaimTemplate": CLAIM}}
    name = "a" * 240
    assert errors_of(pod(meta={"name": name}, volumes=[volume])) == [
        f'volumes[0].name: Invalid value: "{"v" * 63}": PVC name "{name}-{"v" * 63}": '
        "must be no more than 253 characters"
    ]


@pytest.mark.parametrize(
    ("sources", "errors"),
    [
        (
            [
                {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
            ],
            ['projected: Invalid value: "c": conflicting duplicate paths'],
        ),
        (
            [{"secret": {}, "configMap": {"name": "c"}}],
            [
                "projected.sources[0].secret.name: Required value",
                "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
            ],
        ),
        (
            [{"serviceAccountToken": {"expirationSeconds": 599, "path": ""}}],
            [
                "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 10 minutes",
                "projected.path: Required value",
            ],
        ),
        (
            [{"serviceAccountToken": {"expirationSeconds": 2**32 + 1, "path": "../t"}}],
            [
                "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: "
                "may not specify a duration larger than 2^32 seconds",
                "projected.path: Invalid value: \"../t\": must not contain '..'",
            ],
        ),
    ],
)
def test_projected_paths_must_be_unique(sources: list[Json], errors: list[str]) -> None:
    assert first({"projected": {"sources": sources}}, serviceAccountName="a") == errors


def test_a_token_needs_a_service_account() -> None:
    assert first({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}) == [
        "projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"
    ]


def test_sources_of_features_that_are_off_are_dropped() -> None:
    bundle = {"clusterTrustBundle": {"path": "p"}, "podCertificate": {"keyType": "X", "signerName": "s"}}
    assert first({"projected": {"sources": [bundle]}}) == []


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a:1", True),
        ("a:", True),
        (":1", True),
        ("[::1]:1", True),
        ("a", False),
        ("::1", False),
        ("[a", False),
        ("a]:1", False),
        ("[a]b:1", False),
        ("a:[1]", False),
    ],
)
def test_host_port_is_parsed_like_go(text: str, good: bool) -> None:
    assert is_host_port(text) is good
