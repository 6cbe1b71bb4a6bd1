"""Feature gates: their defaults, what is refused, and how they are shown."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.apiserver.filters.feature_gates import with_feature_gates
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.features import HONOURED, WITHOUT_EFFECT, FeatureGates, enabled
from pilothouse.apiserver.server.known_features import DEPENDENCIES, KNOWN


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
    assert KNOWN.keys() >= {*HONOURED, *WITHOUT_EFFECT, *DEPENDENCIES}
    assert KNOWN.keys() >= {each for needed in DEPENDENCIES.values() for each in needed}
    assert not HONOURED & WITHOUT_EFFECT


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
