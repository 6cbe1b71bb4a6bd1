"""How pods begin and end: first status, quality of service, label keys, AppArmor, grace periods, selectable fields."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_pods import container, created, pod, stored
from whole_server import whole_server

from pilothouse.kinds.resources import aggregate_requests
from pilothouse.kube.core.pods.qos import compute_qos_class
from pilothouse.kube.core.pods.resource import PODS, convert_field
from pilothouse.kube.core.pods.strategy import PodStrategy
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import Quantity
from pilothouse.machinery.selectors.fields import Requirement


def test_new_pod_is_always_pending() -> None:
    made = created(pod(status={"phase": "Running", "podIP": "10.0.0.1"}, meta={"generation": 9}))
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1


def test_gated_pod_has_a_scheduling_gated_condition() -> None:
    (condition,) = created(pod(schedulingGates=[{"name": "g"}]))["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
    }


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"ephemeral-storage": "1"}}], "BestEffort"),
        ([{"limits": BOTH, "requests": BOTH}], "Guaranteed"),
        ([{"limits": BOTH, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": BOTH, "requests": BOTH}, {}], "Burstable"),
        ([{"limits": BOTH, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
    ],
)
def test_the_quality_of_service_follows_from_the_resources(containers: list[Json], quality: str) -> None:
    assert compute_qos_class({"containers": [{"resources": each} for each in containers]}) == quality


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({"limits": BOTH, "requests": BOTH}, "Guaranteed"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({}, "BestEffort"),
    ],
)
def test_resources_of_the_pod_take_the_place_of_its_containers(resources: Json, quality: str) -> None:
    containers = [{"resources": {"requests": {"cpu": "1"}}}]
    assert compute_qos_class({"containers": containers, "resources": resources}) == quality


Plan = tuple[list[int], list[tuple[int, bool]]]
amounts = st.integers(0, 20)
plans = st.tuples(st.lists(amounts, max_size=3), st.lists(st.tuples(amounts, st.booleans()), max_size=4))


def peak(regular: Sequence[int], init: Sequence[tuple[int, bool]]) -> int:
    """The most that runs at any one time, step by step."""
    running, most = 0, 0
    for amount, stays in init:
        most = max(most, running + amount)
        running += amount if stays else 0
    return max(most, running + sum(regular))


@settings(max_examples=60)
@given(plans)
def test_pod_requests_are_the_peak_of_its_containers(plan: Plan) -> None:
    regular, init = plan
    spec = {
        "containers": [{"resources": {"requests": {"cpu": str(amount)}}} for amount in regular],
        "initContainers": [
            {"resources": {"requests": {"cpu": str(amount)}}} | ({"restartPolicy": "Always"} if stays else {})
            for amount, stays in init
        ],
    }
    assert aggregate_requests(spec).get("cpu", Quantity(0)) == Quantity(peak(regular, init))


def test_match_label_keys_are_merged_into_selectors() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a", "x"], "mismatchLabelKeys": ["b"]}
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    constraints = [spread | {"labelSelector": {}}, spread]
    made = created(
        pod(meta={"labels": {"a": "1", "b": "2"}}, affinity=affinity, topologySpreadConstraints=constraints)
    )["spec"]
    (required,) = made["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    of_a = {"key": "a", "operator": "In", "values": ["1"]}
    assert required["labelSelector"]["matchExpressions"] == [of_a, {"key": "b", "operator": "NotIn", "values": ["2"]}]
    first, second = made["topologySpreadConstraints"]
    assert first["labelSelector"]["matchExpressions"] == [of_a]
    assert "labelSelector" not in second


APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"


@pytest.mark.parametrize(
    ("annotation", "of_pod", "field", "warned"),
    [
        ("unconfined", None, {"type": "Unconfined"}, True),
        ("runtime/default", None, {"type": "RuntimeDefault"}, True),
        ("localhost/p", None, {"type": "Localhost", "localhostProfile": "p"}, True),
        ("localhost/", None, None, True),
        ("unconfined", {"type": "Unconfined"}, None, False),
    ],
)
def test_an_apparmor_annotation_becomes_a_field(
    annotation: str, of_pod: Json | None, field: Json | None, warned: bool
) -> None:
    context = {"appArmorProfile": of_pod} if of_pod else {}
    made = pod(meta={"annotations": {APPARMOR: annotation}}, securityContext=context)
    found = created(made)["spec"]["containers"][0].get("securityContext", {}).get("appArmorProfile")
    assert found == field
    advice = f'metadata.annotations[{APPARMOR}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    assert list(PodStrategy().warnings_of_preparation(stored(made))) == ([advice] if warned else [])


async def test_a_refused_pod_is_warned_of_its_apparmor_annotation() -> None:
    sent = pod(meta={"annotations": {APPARMOR: "unconfined"}}, restartPolicy="Sometimes")
    async with whole_server() as server:
        refused = await server.request("POST", "/api/v1/namespaces/default/pods", sent)
    assert refused.status == 422
    assert f"metadata.annotations[{APPARMOR}]: deprecated since v1.30" in refused.headers["warning"]


@pytest.mark.parametrize(
    ("spec", "phase", "requested", "period"),
    [
        ({}, "Pending", None, 0),
        ({}, "Pending", 60, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 7, 7),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n"}, "Succeeded", 7, 0),
        ({"nodeName": "n"}, "Failed", None, 0),
    ],
)
def test_grace_period_applies_to_running_pods_only(spec: Json, phase: str, requested: int | None, period: int) -> None:
    assert PodStrategy().grace_period(stored(pod(status={"phase": phase}, **spec)), requested) == period


def test_pods_can_be_selected_by_some_of_their_fields() -> None:
    made = stored(pod(nodeName="n", hostNetwork=True, status={"phase": "Running", "podIP": "10.0.0.1"}))
    assert PODS.fields_of(made) == {
        "metadata.name": "x",
        "metadata.namespace": "default",
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "true",
        "status.phase": "Running",
        "status.podIP": "10.0.0.1",
        "status.nominatedNodeName": "",
    }


def test_old_clients_select_by_the_host() -> None:
    assert convert_field(Requirement("spec.host", "n")) == Requirement("spec.nodeName", "n")
    assert convert_field(Requirement("status.podIPs", "x")) == Requirement("status.podIPs", "x")
    with pytest.raises((BadRequest, ValueError), match="field label not supported"):
        convert_field(Requirement("spec.x", "n"))


def test_fields_of_features_that_are_off_are_dropped_unless_they_are_stored() -> None:
    part = container(lifecycle={"stopSignal": "SIGTERM"})
    made = created(pod(part, schedulingGroup={"podGroupName": "g"}))["spec"]
    assert "schedulingGroup" not in made
    assert "lifecycle" not in made["containers"][0]
    old, new = stored(pod(part)), stored(pod(part))
    PodStrategy().prepare_for_update(new, old)
    assert new["spec"]["containers"][0]["lifecycle"] == {"stopSignal": "SIGTERM"}
