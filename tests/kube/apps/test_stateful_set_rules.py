"""What stateful sets may say, and what of it may change."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.apps.statefulsets import STATEFUL_SETS, StatefulSetStatusStrategy
from pilothouse.machinery.objects import Json

FIXED = "spec: Forbidden: updates to statefulset spec for fields other than"


def stateful_set(*mounts: str, **spec: Any) -> Json:
    container = {
        "name": "c",
        "image": "i",
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in mounts],
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    return {"spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template, **spec}}


def claim(name: str, **spec: Any) -> Json:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": name}, "spec": wanted}


def test_a_stateful_set_keeps_its_claims_and_starts_pods_in_order() -> None:
    spec = decoded(STATEFUL_SETS, stateful_set())["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)


def test_a_strategy_that_is_named_without_parameters_gets_none() -> None:
    spec = decoded(STATEFUL_SETS, stateful_set(updateStrategy={"type": "RollingUpdate"}))["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}


def test_a_claim_template_is_a_whole_claim() -> None:
    [made] = decoded(STATEFUL_SETS, stateful_set(volumeClaimTemplates=[claim("d")]))["spec"]["volumeClaimTemplates"]
    assert (made["kind"], made["apiVersion"], made["status"]) == ("PersistentVolumeClaim", "v1", {"phase": "Pending"})
    assert made["spec"]["volumeMode"] == "Filesystem"


def test_containers_may_mount_what_the_claims_bring() -> None:
    assert refusals(STATEFUL_SETS, stateful_set("d", volumeClaimTemplates=[claim("d")])) == []
    [error] = refusals(STATEFUL_SETS, stateful_set("d"))
    assert error == 'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "d"'


def test_a_claim_takes_the_place_of_a_volume_with_its_name() -> None:
    sent = stateful_set("d", volumeClaimTemplates=[claim("d")])
    sent["spec"]["template"]["spec"]["volumes"] = [{"name": "d", "hostPath": {"path": "../bad"}}]
    assert refusals(STATEFUL_SETS, sent) == []


def test_hostnames_in_the_template_are_not_looked_at() -> None:
    sent = stateful_set()
    sent["spec"]["template"]["spec"] |= {"hostname": "Not A Name", "subdomain": "neither"}
    assert refusals(STATEFUL_SETS, sent) == []


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (
            {"podManagementPolicy": "Both"},
            ["podManagementPolicy: Invalid value: \"Both\": must be 'OrderedReady' or 'Parallel'"],
        ),
        (
            {"updateStrategy": {"type": "Odd", "rollingUpdate": {"partition": 2}}},
            [
                'updateStrategy: Invalid value: {"Type":"Odd","RollingUpdate":{"Partition":2,"MaxUnavailable":null}}: '
                "must be 'RollingUpdate' or 'OnDelete'"
            ],
        ),
        (
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            [
                'updateStrategy.rollingUpdate: Invalid value: {"Partition":0,"MaxUnavailable":null}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            ],
        ),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Maybe"}},
            [
                'persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Maybe": '
                'supported values: "Retain", "Delete"'
            ],
        ),
        ({"ordinals": {"start": -1}}, ["ordinals.start: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"volumeClaimTemplates": [claim("d", accessModes=[])]},
            ["volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required"],
        ),
        ({"selector": None}, ["selector: Required value", "template.metadata.labels: Invalid value: "]),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Json, errors: list[str]) -> None:
    found = refusals(STATEFUL_SETS, stateful_set(**spec))
    wanted = [f"spec.{error}" for error in errors]
    assert [error[: len(start)] for error, start in zip(found, wanted, strict=True)] == wanted


def test_service_names_are_checked_when_the_set_is_created_only() -> None:
    [error] = refusals(STATEFUL_SETS, stateful_set(serviceName="Bad_"))
    assert error.startswith('spec.serviceName: Invalid value: "Bad_": a lowercase RFC 1123 label')
    assert update_refusals(STATEFUL_SETS, stateful_set(serviceName="Bad_"), stateful_set(serviceName="Bad_")) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 3},
        {"minReadySeconds": 3},
        {"ordinals": {"start": 3}},
        {"revisionHistoryLimit": 3},
        {"updateStrategy": {"type": "OnDelete"}},
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
    ],
)
def test_what_describes_the_pods_may_change(spec: Json) -> None:
    assert update_refusals(STATEFUL_SETS, stateful_set(**spec), stateful_set()) == []


@pytest.mark.parametrize(
    "spec", [{"serviceName": "t"}, {"podManagementPolicy": "Parallel"}, {"volumeClaimTemplates": [claim("d")]}]
)
def test_the_identity_of_the_pods_may_not_change(spec: Json) -> None:
    [error] = update_refusals(STATEFUL_SETS, stateful_set(**spec), stateful_set())
    assert error.startswith(FIXED)


def test_a_template_that_was_wrong_may_stay_wrong() -> None:
    wrong = stateful_set("nowhere")
    assert len(refusals(STATEFUL_SETS, wrong)) == 1
    assert update_refusals(STATEFUL_SETS, wrong | {"metadata": {"labels": {"x": "y"}}}, wrong) == []


def test_the_limit_of_unavailable_pods_belongs_to_a_feature_that_is_off() -> None:
    sent = stateful_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}})
    made = decoded(STATEFUL_SETS, sent)
    in_use = decoded(STATEFUL_SETS, sent)
    STATEFUL_SETS.strategy.prepare_for_create(made)
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    kept = decoded(STATEFUL_SETS, sent)
    STATEFUL_SETS.strategy.prepare_for_update(kept, in_use)
    assert kept["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 2


def test_fractions_of_bytes_and_endless_histories_are_worth_a_warning() -> None:
    sent = stateful_set(
        revisionHistoryLimit=-1,
        volumeClaimTemplates=[claim("d", resources={"requests": {"storage": "100m"}})],
    )
    made = decoded(STATEFUL_SETS, sent)
    STATEFUL_SETS.strategy.prepare_for_create(made)
    fraction = 'resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer'
    history = (
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    )
    assert list(STATEFUL_SETS.strategy.warnings_on_create(made)) == [
        f"spec.volumeClaimTemplates[0].{fraction}",
        history,
    ]
    assert list(STATEFUL_SETS.strategy.warnings_on_update(made, made)) == [
        f"spec.volumeClaimTemplates[0].Spec.{fraction}",
        history,
    ]


def test_the_counts_in_a_status_fit_together() -> None:
    obj = decoded(
        STATEFUL_SETS, {**stateful_set(), "status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3}}
    )
    obj["metadata"]["resourceVersion"] = "1"
    assert list(map(str, StatefulSetStatusStrategy().validate_update(obj, obj))) == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas",
    ]


def test_names_must_do_for_pods() -> None:
    [error] = refusals(STATEFUL_SETS, stateful_set() | {"metadata": {"name": "a.b"}})
    assert error == 'metadata.name: Invalid value: "a.b": must not contain dots'
