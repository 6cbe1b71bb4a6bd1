"""Feature gates: their defaults, what is refused, and how they are shown."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.apiserver.filters.feature_gates import with_feature_gates
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.features import HONOURED, WITHOUT_EFFECT, FeatureGates, enabled
from pilothouse.apiserver.server.known_features import PRE_ALPHA, all_gates, known_gates
from pilothouse.machinery.release import RELEASES


@pytest.mark.parametrize(
    ("gates", "problems"),
    [
        ({"Foo": True}, ["unrecognized feature gate: Foo"]),
        (
            {"BtreeWatchCache": False, "GitRepoVolumeDriver": True},
            [
                "cannot set feature gate BtreeWatchCache to false, feature is locked to true",
                "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false",
            ],
        ),
        (
            {"GangScheduling": True},
            ["GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"],
        ),
        (
            {"UnknownVersionInteroperabilityProxy": True},
            ["cannot set feature gate UnknownVersionInteroperabilityProxy to true, feature is locked to false"],
        ),
        ({"AllBeta": True}, []),
        ({"KubeletCrashLoopBackOffMax": False, "EventedPLEG": True, "AllAlpha": False, "BtreeWatchCache": True}, []),
    ],
)
def test_gates_that_can_not_be_had_are_refused(gates: dict[str, bool], problems: list[str]) -> None:
    assert list(FeatureGates(gates).problems()) == problems


def test_all_alpha_and_all_beta_change_the_gates_of_their_stage_that_were_not_named() -> None:
    gates = FeatureGates({"AllAlpha": True, "AllBeta": False, "HPAScaleToZero": False, "EnvFiles": True})
    assert gates.enabled("ContainerStopSignals")
    assert not gates.enabled("HPAScaleToZero")
    assert not gates.enabled("WatchList")
    assert gates.enabled("EnvFiles")
    assert gates.enabled("DRAPrioritizedList")
    assert not FeatureGates({"AllBeta": True}).enabled("UnknownVersionInteroperabilityProxy"), "not implemented"


def test_the_tables_name_only_gates_that_exist() -> None:
    assert all_gates() >= HONOURED | WITHOUT_EFFECT
    assert not HONOURED & WITHOUT_EFFECT


@pytest.mark.parametrize("minor", [each.minor for each in RELEASES.values()])
def test_dependencies_are_gates_of_the_same_binary(minor: int) -> None:
    known = known_gates(minor, minor, minor - 1)
    assert known.specs.keys() >= known.dependencies.keys()
    assert known.specs.keys() >= {each for needed in known.dependencies.values() for each in needed}
    assert not known.specs.keys() & known.implied.keys()
    assert known.specs.keys() | known.implied.keys() == all_gates()


def test_the_gates_of_each_binary() -> None:
    counts = {minor: len(known_gates(minor, minor, minor - 1).specs) for minor in (34, 35, 36, 37)}
    assert counts == {34: 208, 35: 218, 36: 242, 37: 254}


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        # 1.34, 1.35, 1.36 and 1.37; None: the binary does not have the gate
        ("HPAScaleToZero", [("ALPHA", False), ("ALPHA", False), ("ALPHA", False), ("BETA", True)]),
        ("MutatingAdmissionPolicy", [("BETA", False), ("BETA", False), ("", True), ("", True)]),
        ("EnvFiles", [("ALPHA", False), ("BETA", True), ("BETA", True), ("BETA", True)]),
        ("ComponentSLIs", [("", True), None, None, None]),
        ("EtcdRangeStream", [None, None, None, ("BETA", True)]),
        ("DRAFractionalCapacityRange", [None, None, None, ("BETA", False)]),
    ],
)
def test_a_gate_has_the_stage_and_default_of_the_version(name: str, stages: list[tuple[str, bool] | None]) -> None:
    specs = [known_gates(minor, minor, minor - 1).specs.get(name) for minor in (34, 35, 36, 37)]
    assert [spec and (spec.stage, spec.default) for spec in specs] == stages


def test_a_gate_of_another_version_is_implied_by_the_behaviour_of_this_one() -> None:
    older, newer = known_gates(34, 34, 33).implied, known_gates(37, 37, 36).implied
    assert newer["StatefulSetAutoDeletePVC"], "removed after it was locked to true"
    assert not newer["WatchFromStorageWithoutResourceVersion"], "removed after it was locked to false"
    assert not older["ConstrainedImpersonation"], "not there yet"
    assert older["AllowServiceExternalIPs"], "a gate that was added to end what had always been so"


def test_a_gate_follows_the_emulated_version() -> None:
    gates = FeatureGates(emulated=34)
    assert gates.known.specs["ConstrainedImpersonation"].stage == PRE_ALPHA
    assert (gates.enabled("EnvFiles"), FeatureGates(emulated=35).enabled("EnvFiles")) == (False, True)
    assert not FeatureGates({"AllAlpha": True}, emulated=34).enabled("ConstrainedImpersonation"), "it is no alpha gate"
    assert list(FeatureGates({"ConstrainedImpersonation": True}, emulated=34).problems()) == [
        "cannot set feature gate ConstrainedImpersonation to true, feature is PreAlpha at emulated version 1.34,"
        " min compatibility version 1.33"
    ]


def test_a_stage_with_a_minimum_compatibility_version_waits_for_it() -> None:
    name = "DRAFractionalCapacityRange"
    assert not known_gates(37, 37, 36).specs[name].default
    assert known_gates(37, 37, 37).specs[name].default
    assert known_gates(37, 36, 36).specs[name].stage == PRE_ALPHA


async def _answer(handler: Handler, request: Request) -> Response:
    return await handler(request)


async def test_what_answers_a_request_asks_the_gates_of_its_own_server() -> None:
    async def answer(request: Request) -> Response:
        return Response(200, str(enabled("ContainerStopSignals")).encode())

    async def no_body(limit: int) -> bytes:
        return b""

    request = Request("GET", "/", "", [], no_body)
    with_it = with_feature_gates(FeatureGates({"ContainerStopSignals": True}))(answer)
    async with asyncio.TaskGroup() as requests:  # each request has a task of its own
        served = requests.create_task(_answer(with_it, request))
    assert served.result().body == b"True"
    assert (await answer(request)).body == b"False"
