"""Autoscalers that may scale to zero, where the gate is on: back from zero goes only what they have scaled there."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

import pytest

from pilothouse.client import Json
from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.autoscaling import Autoscaling
from pilothouse.controllers.podautoscaler.metric_sources import Proposal
from pilothouse.controllers.podautoscaler.proposals import Proposed

EXTERNAL: Json = {"type": "External", "external": {"metric": {"name": "backlog"}, "target": {"value": "1"}}}


class _Workload:
    """The workload, its metrics and its events at once."""

    there, selector = 0, "app=web"

    def __init__(self, replicas: int, proposed: int) -> None:
        self.wanted = replicas
        self._proposed = proposed

    def of(self, *_: object) -> Awaitable[Any]:
        return self._answer(len(_))

    async def _answer(self, arguments: int) -> object:
        return self if arguments == 1 else Proposed(Proposal(self._proposed, "external metric backlog(nil)", {}), [])

    async def scale(self, replicas: int) -> None:
        self.wanted = replicas

    def event(self, *_: object) -> None:
        return


async def scaled(
    replicas: int, proposed: int, *, least: int = 0, gate: bool = True, before: str = ""
) -> tuple[int, str]:
    """Return the replicas afterwards, and what the autoscaler says of zero."""
    workload = cast("Any", _Workload(replicas, proposed))
    config = AutoscalerConfig(scale_to_zero=gate, downscale_stabilization=0.0)
    autoscaling = Autoscaling(workload, workload, workload, config, FakeClock())
    said = [{"type": "ScaledToZero", "status": before, "lastTransitionTime": "2024-01-01T00:00:00Z"}] if before else []
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": least, "maxReplicas": 10, "metrics": [EXTERNAL], "scaleTargetRef": target}
    meta = {"name": "a", "namespace": "ns"}
    status = await autoscaling.scale("ns/a", {"metadata": meta, "spec": spec, "status": {"conditions": said}})
    found = (each["status"] for each in status["conditions"] if each["type"] == "ScaledToZero")
    return workload.wanted, next(found, "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"replicas": 2, "proposed": 0}, (0, "True")),
        ({"replicas": 2, "proposed": 3}, (3, "False")),
        ({"replicas": 0, "proposed": 3, "before": "True"}, (3, "False")),
        ({"replicas": 0, "proposed": 0, "before": "True"}, (0, "True")),
        ({"replicas": 0, "proposed": 0, "before": "True", "least": 2}, (2, "False")),
        ({"replicas": 0, "proposed": 3, "before": "False"}, (0, "False")),  # somebody else did it
        ({"replicas": 0, "proposed": 3}, (0, "")),
        ({"replicas": 0, "proposed": 3, "before": "True", "gate": False}, (0, "")),
    ],
)
async def test_zero(given: dict[str, Any], expected: tuple[int, str]) -> None:
    assert await scaled(**given) == expected
