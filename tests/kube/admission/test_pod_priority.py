"""Priority: a pod's priority is that of its class."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kube.admission.priority import Priority
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, name_of


class Classes:
    def __init__(self, *classes: Json) -> None:
        self._classes = {name_of(each): each for each in classes}

    async def get(self, name: str) -> Json | None:
        return self._classes.get(name)

    async def default(self) -> Json | None:
        return next((each for each in self._classes.values() if each.get("globalDefault")), None)


def priority_class(name: str, value: int, policy: str | None = None, *, default: bool = False) -> Json:
    made: Json = {"metadata": {"name": name}, "value": value, "globalDefault": default}
    return made | ({"preemptionPolicy": policy} if policy else {})


def written(obj: Json, old: Json | None = None, *, resource: str = "pods", subresource: str = "") -> Attributes:
    group = "" if resource == "pods" else "scheduling.k8s.io"
    return Attributes(
        operation=Operation.CREATE if old is None else Operation.UPDATE,
        kind=GroupVersionKind(group, "v1", "X"),
        resource=GroupVersionResource(group, "v1", resource),
        subresource=subresource,
        namespace="default",
        name=name_of(obj),
        user=User("u"),
        obj=obj,
        old=old,
    )


def pod(**spec: object) -> Json:
    return {"metadata": {"name": "p"}, "spec": dict(spec)}


async def admitted(obj: Json, *classes: Json, old: Json | None = None) -> Json:
    await Priority(Classes(*classes)).admit(written(obj, old))
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return spec


HIGH = priority_class("high", 1000, "Never")
USUAL = priority_class("usual", 10, "PreemptLowerPriority", default=True)


async def test_a_pod_without_a_class_has_no_priority() -> None:
    assert await admitted(pod(), HIGH) == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


async def test_a_pod_has_the_priority_of_its_class() -> None:
    named = {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"}
    assert await admitted(pod(priorityClassName="high"), HIGH, USUAL) == named
    assert await admitted(pod(**named), HIGH) == named


async def test_the_default_class_is_for_pods_without_one() -> None:
    assert (await admitted(pod(), HIGH, USUAL))["priorityClassName"] == "usual"


async def test_a_class_may_leave_preemption_to_the_pod() -> None:
    spec = await admitted(pod(priorityClassName="a", preemptionPolicy="Never"), priority_class("a", 1))
    assert spec["preemptionPolicy"] == "Never"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 1000 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority "
            "admission controller computed Never from the given PriorityClass name",
        ),
    ],
)
async def test_a_pod_cannot_choose_its_priority_itself(spec: Json, why: str) -> None:
    with pytest.raises(Forbidden) as caught:
        await admitted(pod(**spec), HIGH)
    assert caught.value.message == f'pods "p" is forbidden: {why}'


async def test_an_update_does_not_lose_the_priority() -> None:
    old = pod(priority=7, preemptionPolicy="Never")
    assert await admitted(pod(), HIGH, old=old) == old["spec"]


async def test_subresources_are_left_alone() -> None:
    obj = pod()
    await Priority(Classes(USUAL)).admit(written(obj, subresource="binding"))
    assert obj["spec"] == {}


@pytest.mark.parametrize(
    ("name", "update", "allowed"), [("new", False, False), ("usual", True, True), ("b", True, False)]
)
async def test_there_is_one_default_class(name: str, update: bool, allowed: bool) -> None:
    obj = priority_class(name, 1, default=True)
    attributes = written(obj, obj if update else None, resource="priorityclasses")
    plugin = Priority(Classes(USUAL))
    if allowed:
        await plugin.validate(attributes)
        return
    with pytest.raises(Forbidden, match="PriorityClass usual is already marked as default"):
        await plugin.validate(attributes)
