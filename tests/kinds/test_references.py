"""The objects that a pod refers to, and words that only look as if it did."""

from __future__ import annotations

import pytest

from pilothouse.kinds.references import claim_names, config_map_names, resource_claim_names, secret_names
from pilothouse.machinery.objects import Json

_SOURCES = [
    {"azureFile": {"secretName": "s", "shareName": "x"}},
    {"cephfs": {"secretRef": {"name": "s"}}},
    {"cinder": {"volumeID": "v", "secretRef": {"name": "s"}}},
    {"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}},
    {"flexVolume": {"driver": "d", "secretRef": {"name": "s"}}},
    {"iscsi": {"secretRef": {"name": "s"}}},
    {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}},
    {"rbd": {"secretRef": {"name": "s"}}},
    {"scaleIO": {"secretRef": {"name": "s"}}},
    {"secret": {"secretName": "s"}},
    {"storageos": {"secretRef": {"name": "s"}}},
]


@pytest.mark.parametrize("source", _SOURCES, ids=lambda source: next(iter(source)))
def test_every_kind_of_volume_that_needs_a_secret_names_it(source: Json) -> None:
    assert secret_names({"volumes": [{"name": "v"} | source]}) == {"s"}


@pytest.mark.parametrize("containers", ["initContainers", "containers", "ephemeralContainers"])
def test_containers_take_variables_from_secrets_and_config_maps(containers: str) -> None:
    env = [
        {"name": "A", "value": "secretName"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ]
    sources = [{"secretRef": {"name": "t"}}, {"configMapRef": {"name": "d"}}]
    spec = {containers: [{"name": "x", "env": env, "envFrom": sources}]}
    assert secret_names(spec) == {"s", "t"}
    assert config_map_names(spec) == {"c", "d"}


def test_names_that_users_choose_refer_to_nothing() -> None:
    spec = {
        "nodeSelector": {"secretName": "n", "secret": "n", "configMap": "n"},
        "volumes": [
            {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"secretName": "n"}}},
            {"name": "w", "secret": {}},
        ],
        "imagePullSecrets": [{}],
    }
    assert secret_names(spec) == config_map_names(spec) == set()


def test_the_claim_of_an_ephemeral_volume_is_named_after_the_pod() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {}},
        {"name": "c", "emptyDir": {}},
    ]
    assert claim_names({"metadata": {"name": "p"}, "spec": {"volumes": volumes}}) == {"data", "p-b"}


def test_resource_claims_are_named_or_made_from_templates() -> None:
    pod = {
        "spec": {
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "given"},
                {"name": "b", "resourceClaimTemplateName": "t"},
                {"name": "c", "resourceClaimTemplateName": "t"},
            ]
        },
        "status": {
            "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}, {"name": "c"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
        },
    }
    assert resource_claim_names(pod) == ["given", "made", "extended"]
