"""The rules of jobs that need no server: back-off, failure and success policies, removal, and counting once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pilothouse.client import Json, name_of
from pilothouse.controllers.config import JobConfig
from pilothouse.controllers.job.accounting import count_released, write_down
from pilothouse.controllers.job.indexes import indexes_of
from pilothouse.controllers.job.manage import pods_to_remove
from pilothouse.controllers.job.pod_changes import generate_name, template_of, template_of_index
from pilothouse.controllers.job.pods import (
    COMPLETION_INDEX,
    FAILURE_COUNT,
    TRACKING_FINALIZER,
    finish_time,
    match_failure,
)
from pilothouse.controllers.job.sync_state import Backoff, SyncState, backoff_of_index, look_at
from pilothouse.controllers.job.verdict import match_success
from pilothouse.machinery.times import format_time

NOW = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def pod(name: str = "p", phase: str = "Running", index: int | None = None, **fields: Any) -> Json:
    meta: Json = {"name": name, "namespace": "ns", "uid": name, "finalizers": [TRACKING_FINALIZER]}
    meta |= {"creationTimestamp": ago(1000), **fields.pop("meta", {})}
    if index is not None:
        meta["annotations"] = {COMPLETION_INDEX: str(index)} | meta.get("annotations", {})
    status = {"phase": phase, **fields.pop("status", {})}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], **fields}, "status": status}


def ended(seconds: float, phase: str = "Failed", code: int = 1, name: str = "p") -> Json:
    terminated = {"exitCode": code, "finishedAt": ago(seconds)}
    return pod(name, phase, status={"containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]})


def job(status: Json | None = None, **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}
    given = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template, **spec}
    return {"metadata": {"name": "j", "namespace": "ns", "uid": "j"}, "spec": given, "status": status or {}}


def look(of: Json, *pods: Json, released: frozenset[str] = frozenset()) -> SyncState:
    return look_at(of, [*pods], released=released, backoff=Backoff(), now=NOW)


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (99, 600)])
def test_each_failure_doubles_the_delay(failures: int, seconds: float) -> None:
    assert Backoff(failures, NOW).seconds_left(NOW, JobConfig()) == seconds


def test_the_delay_counts_from_the_last_failure_and_ends_with_a_success() -> None:
    backoff = Backoff(1, NOW - timedelta(seconds=500)).after([], [ended(8), ended(5)])
    assert backoff == Backoff(3, NOW - timedelta(seconds=5))
    assert backoff.seconds_left(NOW, JobConfig()) == 35
    assert backoff.after([ended(6, "Succeeded")], [ended(8), ended(5)]) == Backoff(1, NOW - timedelta(seconds=5))
    assert backoff.after([ended(6, "Succeeded")], []) == Backoff()
    assert backoff.after([], []) == backoff


def test_an_index_remembers_its_failures_in_its_pods() -> None:
    assert backoff_of_index(None) == Backoff()
    failed = ended(5)
    failed["metadata"]["annotations"] = {FAILURE_COUNT: "2"}
    assert backoff_of_index(failed) == Backoff(3, NOW - timedelta(seconds=5))


def test_a_pod_ends_as_its_containers_or_its_condition_or_its_deletion_say() -> None:
    unready = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(7)}]}
    deleted = {"deletionTimestamp": ago(-20), "deletionGracePeriodSeconds": 30}
    assert finish_time(ended(5)) == NOW - timedelta(seconds=5)
    assert finish_time(pod(status=unready)) == NOW - timedelta(seconds=7)
    assert finish_time(pod(meta=deleted)) == NOW - timedelta(seconds=10)
    assert finish_time(pod()) == NOW - timedelta(seconds=1000)


@pytest.mark.parametrize(
    ("operator", "values", "name", "action"),
    [
        ("In", [1, 2], None, "Count"),
        ("In", [2], None, ""),
        ("NotIn", [2], None, "Count"),
        ("NotIn", [1], None, ""),
        ("In", [1], "c", "Count"),
        ("In", [1], "other", ""),
    ],
)
def test_exit_codes_match_by_operator_and_container(
    operator: str, values: list[int], name: str | None, action: str
) -> None:
    codes = {"operator": operator, "values": values} | ({"containerName": name} if name else {})
    rules = [{"action": "Count", "onExitCodes": codes}]
    assert match_failure(job(podFailurePolicy={"rules": rules}), ended(1)).action == action


def test_the_first_rule_that_matches_decides() -> None:
    patterns = [{"type": "DisruptionTarget", "status": "True"}]
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}},
        {"action": "FailJob", "onPodConditions": patterns},
        {"action": "Ignore", "onPodConditions": patterns},
    ]
    disrupted = pod("x", "Failed", status={"conditions": [{"type": "DisruptionTarget", "status": "True"}]})
    match = match_failure(job(podFailurePolicy={"rules": rules}), disrupted)
    assert (match.action, match.counts) == ("FailJob", True)
    assert match.message == "Pod ns/x has condition DisruptionTarget matching FailJob rule at index 1"


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededCount": 2}, {0, 5}, True),
        ({"succeededCount": 2}, {0}, False),
        ({"succeededIndexes": "0,5"}, {0, 5, 6}, True),
        ({"succeededIndexes": "0-2"}, {0, 2}, False),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {0, 2}, True),
        ({"succeededIndexes": "x"}, {0}, False),
    ],
)
def test_success_rules(rule: Json, succeeded: set[int], met: bool) -> None:
    of = job(completions=10, successPolicy={"rules": [rule]})
    assert match_success(of, indexes_of(succeeded)) == ("Matched rules at index 0" if met else None)


def test_pods_that_have_got_least_far_go_first() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(9)}]}
    running, pending = pod("running", nodeName="n"), pod("pending", "Pending", nodeName="n")
    unbound, serving = pod("unbound", "Pending"), pod("serving", nodeName="n", status=ready)
    young = pod("young", nodeName="n", meta={"creationTimestamp": ago(1)})
    order = pods_to_remove(job(), [serving, running, young, pending, unbound], 5)
    assert [name_of(each) for each in order] == ["unbound", "pending", "young", "running", "serving"]


def test_pods_with_an_index_too_many_go_in_any_case() -> None:
    of = job(completionMode="Indexed", completions=2)
    pods = [pod("a", index=0), pod("b", "Pending", index=0), pod("c", index=1), pod("d", index=2), pod("e")]
    assert {name_of(each) for each in pods_to_remove(of, pods, 0)} == {"b", "d", "e"}


def test_a_name_is_cut_so_that_the_index_stays() -> None:
    assert generate_name({"metadata": {"name": "j"}}, 7) == "j-7-"
    assert generate_name({"metadata": {"name": "x" * 63}}, 12) == "x" * 54 + "-12-"


def test_a_variable_of_the_users_own_is_kept() -> None:
    of = job(completionMode="Indexed", completions=1)
    own = {"name": "JOB_COMPLETION_INDEX", "value": "x"}
    of["spec"]["template"]["spec"]["containers"][0]["env"] = [own]
    template = template_of_index(of, template_of(of), 0, None)
    assert template["spec"]["containers"][0]["env"] == [own]
    assert FAILURE_COUNT not in template["metadata"]["annotations"]


def test_a_pod_is_counted_once_whenever_the_controller_stops() -> None:
    """Each look begins with what the last one has stored, whatever it came to do after that."""
    of, done = job(completions=3), pod("done", "Succeeded")
    state = look(of, done)
    assert write_down(state).to_release == [done]
    assert (state.succeeded, state.uncounted("succeeded")) == (1, ["done"])
    # stopped before the finalizer went: it is released again, and not written down again
    again = look(of, done)
    accounts = write_down(again)
    assert (again.succeeded, accounts.to_release, accounts.changed) == (1, [done], False)
    # stopped after the finalizer went
    free = pod("done", "Succeeded", meta={"finalizers": []})
    assert look(of, free).succeeded == 1
    assert count_released(of["status"], [])
    assert of["status"]["succeeded"] == 1
    # counted: neither the pod nor what the cache still shows of it counts again
    assert look(of, free).succeeded == 1
    assert look(of, done, released=frozenset({"done"})).succeeded == 1
    assert not count_released(of["status"], [])


def test_no_more_pods_are_written_down_than_the_status_can_hold() -> None:
    of = job(completions=700, parallelism=700)
    accounts = write_down(look(of, *(pod(f"p{number}", "Succeeded") for number in range(600))))
    assert accounts.full
    assert len(accounts.to_release) == len(of["status"]["uncountedTerminatedPods"]["succeeded"]) == 500
