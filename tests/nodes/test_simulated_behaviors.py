"""Who behaves how: annotations, and SimulatedBehavior objects by selector and priority."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.behavior.model import (
    ContainerBehavior,
    ExecAnswer,
    InvalidBehavior,
    NodeBehavior,
    container_behavior,
)
from pilothouse.nodes.metrics.usage import pod_usage


def behaviors(*objects: Json) -> Behaviors:
    found = Behaviors(lambda node: {"disk": "slow"} if node == "n1" else {})
    for obj in objects:
        found.set(obj)
    return found


def rule(name: str, *, selector: Json | None = None, priority: int = 0, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"selector": selector or {}, "priority": priority, **spec}}


def pod(*, node: str = "n1", namespace: str = "default", **annotations: str) -> Json:
    meta = {"name": "p", "namespace": namespace, "labels": {"app": "web"}}
    annotated = {f"pilothouse.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"metadata": {**meta, "annotations": annotated}, "spec": {"nodeName": node}}


def test_without_anything_said_nothing_is_special() -> None:
    assert behaviors().of_container(pod(), "app") == ContainerBehavior()
    assert behaviors().of_node({"metadata": {"name": "n1"}}) == NodeBehavior()


@pytest.mark.parametrize(
    ("selector", "concerns"),
    [
        ({}, True),
        ({"namespaces": ["default"]}, True),
        ({"namespaces": ["other"]}, False),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"podSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"containers": ["app"]}, True),
        ({"containers": ["sidecar"]}, False),
        ({"nodes": ["n1"]}, True),
        ({"nodes": ["n2"]}, False),
        ({"nodeSelector": {"matchLabels": {"disk": "slow"}}}, True),
        ({"nodeSelector": {"matchLabels": {"disk": "fast"}}}, False),
    ],
)
def test_an_object_concerns_the_containers_that_it_selects(selector: Json, concerns: bool) -> None:
    found = behaviors(rule("r", selector=selector, container={"exitCode": 3})).of_container(pod(), "app")
    assert found.exit_code == (3 if concerns else None)


def test_field_by_field_annotations_go_first_and_then_the_greatest_priority() -> None:
    objects = (
        rule("a", container={"exitCode": 1, "exitAfter": "1s", "cpu": "1"}),
        rule("b", container={"exitCode": 2, "exitAfter": "2s"}, priority=5),
    )
    found = behaviors(*objects).of_container(pod(exit_code="3"), "app")
    assert (found.exit_code, found.exit_after, found.cpu) == (3, 2.0, "1")


def test_json_in_an_annotation_can_be_about_one_container() -> None:
    annotated = pod(behavior='{"exitAfter": "5s", "containers": {"app": {"exitCode": 7, "exitAfter": "1s"}}}')
    assert behaviors().of_container(annotated, "app") == ContainerBehavior(exit_after=1.0, exit_code=7)
    assert behaviors().of_container(annotated, "other") == ContainerBehavior(exit_after=5.0)


def test_an_annotation_that_makes_no_sense_is_as_good_as_none() -> None:
    assert behaviors().of_container(pod(exit_after="soon"), "app") == ContainerBehavior()
    assert behaviors().of_container(pod(behavior="{"), "app") == ContainerBehavior()
    assert behaviors().problem_with(pod(exit_after="soon")) == 'exitAfter: time: invalid duration "soon"'
    unknown = pod(behavior='{"containers": {"app": {"exit": 1}}}')
    assert behaviors().problem_with(unknown).startswith("exit: unknown")
    assert behaviors().problem_with(pod(exit_after="1s")) == ""


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InvalidBehavior, match="failingProbes: unknown probe 'live'"):
        container_behavior({"failingProbes": ["live"]})
    with pytest.raises(InvalidBehavior, match="exitafter: unknown"):
        container_behavior({"exitafter": "1s"})


@pytest.mark.parametrize(
    "given",
    [
        {"exitCode": 256},
        {"exitCode": -1},
        {"exitCode": 1e300},
        {"exitCode": "9" * 30},
        {"exec": [{"command": 5}]},
        {"exec": [{"stdout": 5}]},
        {"exec": [{"exitCode": 10**18}]},
        {"containers": ["app"]},
        {"containers": {"app": 5}},
    ],
    ids=str,
)
def test_behavior_that_no_container_can_have_is_refused(given: Json) -> None:
    annotated = pod(behavior=orjson.dumps(given).decode())
    assert behaviors().problem_with(annotated)
    assert behaviors().of_container(annotated, "app") == ContainerBehavior()


@pytest.mark.parametrize("quantity", ["1e999999999", "9" * 400, "Infinity%", "NaN%", "1e999999%", "-5%"])
def test_usage_that_no_container_can_have_is_ignored(quantity: str) -> None:
    annotated = pod(memory=quantity)
    spec = {"containers": [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]}
    running = {"name": "app", "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}
    annotated |= {"spec": spec, "status": {"containerStatuses": [running]}}
    assert pod_usage(annotated, behaviors().of_container)["app"].memory == 8 << 20


def test_the_longest_beginning_of_a_command_gives_the_answer() -> None:
    answers = [{"stdout": "any"}, {"command": ["ls"], "stdout": "a"}, {"command": ["ls", "/x"], "exitCode": 2}]
    found = container_behavior({"exec": answers})
    assert found.answer_to(["ls", "/x", "-l"]) == ExecAnswer(("ls", "/x"), "", "", 2)
    assert found.answer_to(["ls"]) == ExecAnswer(("ls",), "a")
    assert found.answer_to(["ps"]) == ExecAnswer((), "any")


def test_nodes_are_told_by_name_label_or_annotation() -> None:
    found = behaviors(rule("r", selector={"nodes": ["n1"]}, node={"diskPressure": True}))
    node = {"metadata": {"name": "n1", "annotations": {"pilothouse.dev/behavior": '{"notReady": true}'}}}
    assert found.of_node(node) == NodeBehavior(not_ready=True, disk_pressure=True)
    assert found.of_node({"metadata": {"name": "n2"}}) == NodeBehavior()


def test_whoever_listens_hears_of_changes() -> None:
    found, heard = behaviors(), []
    found.on_change.append(lambda: heard.append(1))
    found.set(rule("r", container={"exitCode": 1}))
    found.remove("r")
    assert len(heard) == 2
    assert found.of_container(pod(), "app") == ContainerBehavior()
