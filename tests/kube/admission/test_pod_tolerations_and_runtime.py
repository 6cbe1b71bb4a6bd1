"""DefaultTolerationSeconds and RuntimeClass: what pods get from their cluster and from their runtime."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kube.admission.runtime_class import RuntimeClass
from pilothouse.kube.admission.tolerations import NOT_READY, UNREACHABLE, DefaultTolerationSeconds, merge_tolerations
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


def creating(spec: Json) -> Attributes:
    return Attributes(
        operation=Operation.CREATE,
        kind=GroupVersionKind("", "v1", "Pod"),
        resource=GroupVersionResource("", "v1", "pods"),
        subresource="",
        namespace="default",
        name="",
        user=User("u"),
        obj={"metadata": {"generateName": "p-"}, "spec": spec},
    )


def tolerating(key: str, seconds: int) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], [tolerating(NOT_READY, 5), tolerating(UNREACHABLE, 6)]),
        ([tolerating(NOT_READY, 1)], [tolerating(UNREACHABLE, 6)]),
        ([{"key": NOT_READY, "effect": "NoSchedule"}], [tolerating(NOT_READY, 5), tolerating(UNREACHABLE, 6)]),
        ([{"operator": "Exists"}], []),
        ([{"key": "other", "operator": "Exists"}], [tolerating(NOT_READY, 5), tolerating(UNREACHABLE, 6)]),
    ],
)
async def test_pods_stay_for_a_while_on_a_failing_node(given: list[Json], added: list[Json]) -> None:
    spec: Json = {"tolerations": list(given)}
    await DefaultTolerationSeconds(not_ready=5, unreachable=6).admit(creating(spec))
    assert spec["tolerations"] == given + added


CLASS = {
    "overhead": {"podFixed": {"cpu": "100m"}},
    "scheduling": {"nodeSelector": {"runtime": "kata"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
}


async def known(name: str) -> Json | None:
    return {"kata": CLASS, "plain": {}}.get(name)


async def test_a_pod_gets_what_its_runtime_needs() -> None:
    spec: Json = {"runtimeClassName": "kata", "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}
    await RuntimeClass(known).admit(creating(spec))
    await RuntimeClass(known).validate(creating(spec))
    assert spec == {
        "runtimeClassName": "kata",
        "overhead": {"cpu": "100m"},
        "nodeSelector": {"a": "b", "runtime": "kata"},
        "tolerations": [{"key": "x"}, {"key": "kata", "operator": "Exists"}],
    }


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = runc",
        ),
    ],
)
async def test_a_pod_cannot_differ_from_its_runtime(spec: Json, why: str) -> None:
    with pytest.raises(Forbidden) as caught:
        await RuntimeClass(known).admit(creating(spec))
    assert caught.value.message == f'pods "p-" is forbidden: {why}'


@pytest.mark.parametrize("runtime", [{}, {"runtimeClassName": "plain"}])
async def test_overhead_comes_only_from_a_runtime(runtime: Json) -> None:
    with pytest.raises(Forbidden, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"):
        await RuntimeClass(known).validate(creating({"overhead": {"cpu": "1"}, **runtime}))


async def test_the_same_overhead_may_be_written_differently() -> None:
    spec: Json = {"runtimeClassName": "kata", "overhead": {"cpu": "0.1"}}
    await RuntimeClass(known).admit(creating(spec))
    assert spec["overhead"] == {"cpu": "100m"}


EXISTS, EQUAL = {"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "x"}


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ([EXISTS], [EXISTS], [EXISTS]),
        ([EXISTS], [EQUAL], [EXISTS]),
        ([EQUAL], [EXISTS], [EXISTS]),
        ([EQUAL], [EQUAL | {"value": "y"}], [EQUAL, EQUAL | {"value": "y"}]),
        ([{"operator": "Exists"}], [EQUAL, EXISTS], [{"operator": "Exists"}]),
        ([EXISTS | {"effect": "NoSchedule"}], [EXISTS], [EXISTS]),
        (
            [tolerating("a", 5)],
            [tolerating("a", 9), EXISTS | {"effect": "NoExecute"}],
            [EXISTS | {"effect": "NoExecute"}],
        ),
        ([tolerating("a", 9)], [tolerating("a", 5)], [tolerating("a", 9)]),
    ],
)
def test_merged_tolerations_are_no_more_than_needed(first: list[Json], second: list[Json], merged: list[Json]) -> None:
    assert merge_tolerations(first, second) == merged
