"""Times at which the results of probes take effect."""

from __future__ import annotations

import pytest

from pilothouse.client import Json
from pilothouse.nodes.behavior.model import NOTHING_SPECIAL, ContainerBehavior, HttpAnswer
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.pods.probes import Probes
from pilothouse.nodes.pods.state import MAIN, RUNNING, Container, ContainerState
from pilothouse.nodes.pods.world import ProbeOutcome, World

START = 1000.0
COMMAND: Json = {"exec": {"command": ["check"]}, "periodSeconds": 10}


def probes_of(
    probes: Json, outcomes: dict[str, list[tuple[float, bool]]], behavior: ContainerBehavior = NOTHING_SPECIAL
) -> Probes:
    """The probes of a container in real time, with outcomes by the name of the probe."""
    timelines = {("c", name): tuple(ProbeOutcome(*outcome) for outcome in found) for name, found in outcomes.items()}
    world = World(SimulationConfig(time_scale=1.0), lambda name: behavior, "u", probes=timelines)
    spec = {"name": "c", **{f"{name}Probe": probe for name, probe in probes.items()}}
    return Probes(Container("c", MAIN, spec), ContainerState(stage=RUNNING, since=START), behavior, world)


def readiness(probes: Probes) -> list[tuple[float, bool]]:
    return [(effect.at - START, effect.succeeds) for effect in probes.readiness()]


@pytest.mark.parametrize(
    ("fields", "outcomes", "expected"),
    [
        ({}, [], [(0.0, True)]),
        ({"initialDelaySeconds": 5}, [(0.0, False), (12.0, True)], [(15.0, True)]),
        ({"successThreshold": 3}, [(0.0, True)], [(20.0, True)]),
        ({"failureThreshold": 2}, [(0.0, True), (30.0, False)], [(0.0, True), (50.0, False)]),
        # A change that ends before the next run of the probe, or before its threshold, has no effect.
        ({}, [(0.0, True), (21.0, False), (29.0, True)], [(0.0, True), (30.0, True)]),
        ({"failureThreshold": 3}, [(0.0, True), (10.0, False), (35.0, True)], [(0.0, True), (40.0, True)]),
    ],
)
def test_a_result_takes_effect_at_its_threshold(
    fields: Json, outcomes: list[tuple[float, bool]], expected: list[tuple[float, bool]]
) -> None:
    found = {"readiness": outcomes} if outcomes else {}
    assert readiness(probes_of({"readiness": {**COMMAND, **fields}}, found)) == expected


def test_other_probes_wait_until_the_container_has_started() -> None:
    started = {"startup": [(0.0, False), (14.0, True)], "liveness": [(0.0, False)]}
    probes = probes_of(
        {"startup": COMMAND, "readiness": COMMAND, "liveness": {**COMMAND, "failureThreshold": 1}}, started
    )
    assert probes.started_at() == START + 20.0
    assert readiness(probes) == [(20.0, True)]
    failure = probes.failure("liveness")
    assert failure is not None
    assert failure.at == START + 30.0


def test_a_startup_probe_that_fails_too_often_ends_the_container() -> None:
    probes = probes_of({"startup": {**COMMAND, "failureThreshold": 2}}, {"startup": [(0.0, False), (60.0, True)]})
    failure = probes.failure("startup")
    assert failure is not None
    assert failure.at == START + 20.0
    assert probes.started_at() is None


@pytest.mark.parametrize(("status", "succeeds"), [(200, True), (302, True), (404, False), (503, False)])
def test_the_status_of_an_answer_decides_an_http_probe(status: int, succeeds: bool) -> None:
    probe = {"httpGet": {"path": "/live?x=1", "port": 80}, "failureThreshold": 1}
    behavior = ContainerBehavior(http=(HttpAnswer("/live", 80, status), HttpAnswer("/", 0, 204)))
    assert (probes_of({"liveness": probe}, {}, behavior).failure("liveness") is None) == succeeds


def test_the_longest_path_answers() -> None:
    answers = (HttpAnswer("/"), HttpAnswer("/a", body="a"), HttpAnswer("/a/b/", body="b"), HttpAnswer("/a", 81, 500))
    behavior = ContainerBehavior(http=answers)
    found = {path: behavior.http_answer(80, path) for path in ("/", "/a", "/ab", "/a/b", "/a/b/c")}
    assert {path: answer and answer.body for path, answer in found.items()} == {
        "/": "",
        "/a": "a",
        "/ab": "",
        "/a/b": "b",
        "/a/b/c": "b",
    }
    on_other_port = behavior.http_answer(81, "/a/x")
    assert on_other_port is not None
    assert on_other_port.status == 500
