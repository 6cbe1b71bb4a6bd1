"""What `kubectl get pods` shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sample_pods import container, pod, stored

from pilothouse.apiserver.registry.table import table_row
from pilothouse.kube.core.pods.resource import COLUMNS
from pilothouse.machinery.objects import Json

RUNNING = {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}}


def row_of(obj: Json) -> Json:
    return table_row(COLUMNS, obj)


def cells(obj: Json) -> dict[str, Any]:
    row = row_of(obj)
    return dict(zip((column.name for column in COLUMNS), row["cells"], strict=True))


def shown(*containers: Json, **status: Any) -> tuple[str, str, str]:
    """Ready, status and restarts of a pod with this status."""
    found = cells(stored(pod(*containers, status=status)))
    return found["Ready"], found["Status"], found["Restarts"]


def ended(code: int, **more: Any) -> Json:
    return {"terminated": {"exitCode": code, **more}}


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"phase": "Pending"}, ("0/1", "Pending", "0")),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, ("1/1", "Running", "0")),
        ({"phase": "Running", "containerStatuses": [RUNNING | {"ready": False}]}, ("0/1", "Running", "0")),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            ("0/1", "SchedulingGated", "0"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
                ],
            },
            ("0/1", "CrashLoopBackOff", "3"),
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [{"name": "c", "state": ended(0, reason="Completed"), "restartCount": 0}],
            },
            ("0/1", "Completed", "0"),
        ),
        ({"phase": "Failed", "containerStatuses": [{"name": "c", "state": ended(137)}]}, ("0/1", "ExitCode:137", "0")),
        (
            {"phase": "Failed", "containerStatuses": [{"name": "c", "state": ended(1, signal=9)}]},
            ("0/1", "Signal:9", "0"),
        ),
    ],
)
def test_status_column_shows_the_most_important_reason(status: Json, line: tuple[str, str, str]) -> None:
    assert shown(**status) == line


@pytest.mark.parametrize(
    ("conditions", "status"),
    [([{"type": "Ready", "status": "True"}], "Running"), ([], "NotReady")],
)
def test_a_pod_with_one_container_ended_goes_on_running(conditions: list[Json], status: str) -> None:
    statuses = [{"name": "c", "state": ended(0, reason="Completed")}, RUNNING | {"name": "d"}]
    found = shown(container(), container(name="d"), phase="Running", conditions=conditions, containerStatuses=statuses)
    assert found == ("1/2", status, "0")


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, "Init:0/2"),
        ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
        (ended(1), "Init:ExitCode:1"),
        (ended(1, signal=9), "Init:Signal:9"),
        (ended(1, reason="Error"), "Init:Error"),
        ({"running": {}}, "Init:0/2"),
    ],
)
def test_initializing_pod_shows_the_progress(state: Json, status: str) -> None:
    made = pod(
        initContainers=[container(name="a"), container(name="b")],
        status={"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": state, "restartCount": 2}]},
    )
    found = cells(stored(made))
    assert (found["Status"], found["Restarts"]) == (status, "2")


def test_a_sidecar_counts_as_a_container() -> None:
    made = pod(
        initContainers=[container(name="s", restartPolicy="Always"), container(name="i")],
        status={
            "phase": "Running",
            "initContainerStatuses": [
                {"name": "s", "started": True, "ready": True, "restartCount": 2, "state": {"running": {}}},
                {"name": "i", "restartCount": 5, "state": ended(0)},
            ],
            "containerStatuses": [RUNNING],
        },
    )
    found = cells(stored(made))
    assert (found["Ready"], found["Status"], found["Restarts"]) == ("2/2", "Running", "2")


def test_restart_column_shows_the_latest_restart() -> None:
    at = (datetime.now(UTC) - timedelta(minutes=5, seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    earlier = "2020-01-01T00:00:00Z"
    last = [{"terminated": {"exitCode": 1, "finishedAt": time}} for time in (at, earlier)]
    statuses = [RUNNING | {"restartCount": 2, "lastState": each, "name": n} for each, n in zip(last, "cd", strict=True)]
    found = shown(container(), container(name="d"), phase="Running", containerStatuses=statuses)
    assert found in {("2/2", "Running", f"4 (5m{seconds}s ago)") for seconds in range(1, 9)}


@pytest.mark.parametrize(
    ("status", "shown_as"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Succeeded"}, "Succeeded"),
    ],
)
def test_deleted_pod_is_shown_as_terminating(status: Json, shown_as: str) -> None:
    made = stored(pod(status=status))
    made["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    assert cells(made)["Status"] == shown_as


def test_a_wide_table_shows_where_the_pod_is() -> None:
    gates = [{"conditionType": "a"}, {"conditionType": "b"}]
    made = pod(
        nodeName="n",
        readinessGates=gates,
        status={"podIP": "10.0.0.1", "conditions": [{"type": "a", "status": "True"}]},
    )
    found = cells(stored(made))
    names = ("IP", "Node", "Nominated Node", "Readiness Gates")
    assert [found[name] for name in names] == ["10.0.0.1", "n", "<none>", "1/2"]
    bare = cells(stored(pod(status={})))
    assert [bare[name] for name in names] == ["<none>"] * 4


@pytest.mark.parametrize(
    ("phase", "conditions"),
    [
        ("Running", None),
        (
            "Succeeded",
            [
                {
                    "type": "Completed",
                    "status": "True",
                    "reason": "Succeeded",
                    "message": "The pod has completed successfully.",
                }
            ],
        ),
        ("Failed", [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]),
    ],
)
def test_the_row_of_a_pod_that_has_ended_says_so(phase: str, conditions: list[Json] | None) -> None:
    assert row_of(stored(pod(status={"phase": phase}))).get("conditions") == conditions
