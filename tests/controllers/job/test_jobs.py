"""job-controller: pods of jobs are started, counted and let go, and jobs end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed
from jobs_and_pods import JobsAndPods, condition

from pilothouse.client import DeleteOptions, name_of, uid_of
from pilothouse.controllers.config import JobConfig
from pilothouse.controllers.context import ControllerConfig
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("jobs")) as server:
        quick = JobConfig(sync_batch_period=0.01, pod_failure_backoff=0.0, max_pod_failure_backoff=0.0)
        server = replace(server, config=ControllerConfig(jobs=quick))
        async with managed(server, "job"):
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def there(server: ControlledServer, request: pytest.FixtureRequest) -> JobsAndPods:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-")
    await server.create_namespace(namespace)
    return JobsAndPods(server.client, namespace)


async def test_a_job_completes_when_enough_pods_have_succeeded(there: JobsAndPods) -> None:
    job = await there.create("j", completions=3, parallelism=2)
    first, second = await there.until_active(2)
    assert metadata(first)["finalizers"] == [TRACKING]
    assert metadata(first)["generateName"] == "j-"
    [owner] = metadata(first)["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", uid_of(job), True)
    status = await there.until_job("j", lambda status: status.get("active") == 2)
    assert (status["ready"], status["terminating"]) == (0, 0)
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}]
    await there.set_status(first, phase="Running", conditions=ready)
    await there.until_job("j", lambda status: status["ready"] == 1)
    await there.succeed(first)
    await there.succeed(second)
    [third] = await there.until_active(1)
    await there.succeed(third)
    status = await there.until_job("j", lambda status: status.get("completionTime"))
    assert status["succeeded"] == 3
    assert status["uncountedTerminatedPods"] == {}
    assert "active" not in status
    for type_ in ("SuccessCriteriaMet", "Complete"):
        found = condition(status, type_)
        assert found["reason"] == "CompletionsReached"
        assert found["message"] == "Reached expected number of succeeded pods"
    pods = await until_all(there.pods, lambda pods: not any(metadata(pod).get("finalizers") for pod in pods))
    assert len(pods) == 3
    event = await there.until_event("Completed")
    assert (event["type"], event["message"]) == ("Normal", "Job completed")
    assert event["source"] == {"component": "job-controller"}


async def test_one_success_ends_a_work_queue_when_the_other_pods_have_ended(there: JobsAndPods) -> None:
    await there.create("j", parallelism=2)
    first, second = await there.until_active(2)
    await there.succeed(first)
    status = await there.until_job("j", lambda status: status.get("succeeded") == 1)
    assert not condition(status, "Complete")
    await there.fail(second)
    status = await there.until_job("j", lambda status: status.get("completionTime"))
    assert (status["succeeded"], status["failed"]) == (1, 1)


async def test_pods_that_fail_are_replaced_until_the_limit_is_reached(there: JobsAndPods) -> None:
    await there.create("j", backoffLimit=1)
    [first] = await there.until_active(1)
    await there.fail(first)
    [second] = await there.until_replaced(first, 1)
    await there.fail(second)
    failed = await there.until_condition("j", "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert failed["message"] == "Job has reached the specified backoff limit"
    job = await there.jobs.get("j")
    assert condition(job["status"], "FailureTarget")["reason"] == "BackoffLimitExceeded"
    assert job["status"]["failed"] == 2
    assert "completionTime" not in job["status"]
    event = await there.until_event("BackoffLimitExceeded")
    assert event["type"] == "Warning"


async def test_restarts_in_a_pod_count_towards_the_limit(there: JobsAndPods) -> None:
    await there.create("j", restart="OnFailure", backoffLimit=2)
    [pod] = await there.until_active(1)
    restarted = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 2, "state": {}}
    await there.set_status(pod, phase="Running", containerStatuses=[restarted])
    found = await there.until_job("j", lambda status: condition(status, "FailureTarget"))
    assert condition(found, "FailureTarget")["reason"] == "BackoffLimitExceeded"
    await until_gone(there.pods, name_of(pod))  # no node has it, so nothing is waited for
    await there.until_condition("j", "Failed")


async def test_a_job_is_not_over_before_its_pods_have_terminated(there: JobsAndPods) -> None:
    await there.create("j", activeDeadlineSeconds=1)
    [pod] = await there.until_active(1)
    binding = {"metadata": {"name": name_of(pod)}, "target": {"kind": "Node", "name": "n"}}
    await there.pods.create(binding, name=name_of(pod), subresource="binding")
    status = await there.until_job(
        "j", lambda status: condition(status, "FailureTarget") and status.get("terminating") == 1
    )
    assert condition(status, "FailureTarget")["reason"] == "DeadlineExceeded"
    assert condition(status, "FailureTarget")["message"] == "Job was active longer than specified deadline"
    assert not condition(status, "Failed")
    await there.pods.delete(name_of(pod), DeleteOptions(grace_period_seconds=0))
    failed = await there.until_condition("j", "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    assert (await there.jobs.get("j"))["status"]["failed"] == 1


async def test_a_suspended_job_has_no_pods_and_starts_anew(there: JobsAndPods) -> None:
    await there.create("j", suspend=True)
    suspended = await there.until_condition("j", "Suspended")
    assert (suspended["reason"], suspended["message"]) == ("JobSuspended", "Job suspended")
    assert "startTime" not in (await there.jobs.get("j"))["status"]
    await there.until_event("Suspended")
    await there.jobs.patch("j", {"spec": {"suspend": False}})
    [pod] = await there.until_active(1)
    status = await there.until_job("j", lambda status: condition(status, "Suspended").get("status") == "False")
    assert condition(status, "Suspended")["reason"] == "JobResumed"
    assert status["startTime"]
    await there.jobs.patch("j", {"spec": {"suspend": True}})
    await until_gone(there.pods, name_of(pod))
    status = await there.until_job("j", lambda status: "startTime" not in status)
    assert condition(status, "Suspended")["status"] == "True"
    assert "failed" not in status
    assert (await there.until_event("Resumed"))["message"] == "Job resumed"


async def test_the_pods_of_an_indexed_job_know_their_index(there: JobsAndPods) -> None:
    await there.create("j", completionMode="Indexed", completions=4, parallelism=3)
    pods = await there.until_active(3)
    assert {annotations_of(pod)[INDEX] for pod in pods} == {"0", "1", "2"}
    by_index = {int(labels_of(pod)[INDEX]): pod for pod in pods}
    spec = by_index[1]["spec"]
    assert spec["hostname"] == "j-1"
    [variable] = spec["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    assert name_of(by_index[1]).startswith("j-1-")
    await there.succeed(by_index[0])
    await there.succeed(by_index[2])
    status = await there.until_job("j", lambda status: status.get("completedIndexes") == "0,2")
    assert status["succeeded"] == 2
    pods = await until_all(there.pods, lambda pods: len(pods) == 4)
    for pod in pods:
        if annotations_of(pod)[INDEX] in "13":
            await there.succeed(pod)
    status = await there.until_job("j", lambda status: status.get("completionTime"))
    assert status["completedIndexes"] == "0-3"


async def test_an_indexed_job_grows_and_shrinks(there: JobsAndPods) -> None:
    await there.create("j", completionMode="Indexed", completions=2, parallelism=2)
    await there.until_active(2)
    await there.jobs.patch("j", {"spec": {"completions": 3, "parallelism": 3}})
    await there.until_active(3)
    await there.jobs.patch("j", {"spec": {"completions": 1, "parallelism": 1}})
    [left] = await there.until_active(1)
    assert annotations_of(left)[INDEX] == "0"


async def test_an_index_fails_by_itself(there: JobsAndPods) -> None:
    await there.create("j", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    zero, one = sorted(await there.until_active(2), key=lambda pod: annotations_of(pod)[INDEX])
    assert annotations_of(zero)[FAILURES] == "0"
    await there.fail(zero)
    pods = await there.until_replaced(zero, 2)
    again = next(pod for pod in pods if annotations_of(pod)[INDEX] == "0")
    assert annotations_of(again)[FAILURES] == "1"
    await there.fail(again)
    status = await there.until_job("j", lambda status: status.get("failedIndexes") == "0")
    assert not condition(status, "Failed")
    await there.succeed(one)
    assert (await there.until_condition("j", "Failed"))["reason"] == "FailedIndexes"
    status = (await there.jobs.get("j"))["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("1", "0")


async def test_too_many_failed_indexes_fail_the_job(there: JobsAndPods) -> None:
    limits: Json = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    await there.create("j", completionMode="Indexed", completions=2, parallelism=2, **limits)
    first, _ = await there.until_active(2)
    await there.fail(first)
    failed = await there.until_condition("j", "Failed")
    assert failed["reason"] == "MaxFailedIndexesExceeded"
    assert failed["message"] == "Job has exceeded the specified maximal number of failed indexes"


async def test_a_failure_policy_fails_the_job_or_ignores_the_pod(there: JobsAndPods) -> None:
    codes = {"operator": "In", "values": [42]}
    rules = [
        {"action": "FailJob", "onExitCodes": codes},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    await there.create("j", backoffLimit=0, podFailurePolicy={"rules": rules})
    [first] = await there.until_active(1)
    disrupted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}
    await there.fail(first, 137, conditions=[disrupted])
    [second] = await there.until_replaced(first, 1)
    await there.fail(second, 42)
    failed = await there.until_condition("j", "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    where = f"{there.namespace}/{name_of(second)}"
    assert failed["message"] == (
        f"Container c for pod {where} failed with exit code 42 matching FailJob rule at index 0"
    )
    assert (await there.jobs.get("j"))["status"]["failed"] == 1


async def test_a_success_policy_ends_the_job_early(there: JobsAndPods) -> None:
    rules = [{"succeededIndexes": "1"}]
    policy: Json = {"completionMode": "Indexed", "successPolicy": {"rules": rules}}
    await there.create("j", completions=3, parallelism=3, **policy)
    pods = await there.until_active(3)
    await there.succeed(next(pod for pod in pods if annotations_of(pod)[INDEX] == "1"))
    complete = await there.until_condition("j", "Complete")
    assert (complete["reason"], complete["message"]) == ("SuccessPolicy", "Matched rules at index 0")
    status = (await there.jobs.get("j"))["status"]
    assert (status["succeeded"], status.get("failed")) == (1, None)


async def test_a_terminating_pod_is_replaced_only_when_it_has_failed_if_the_job_says_so(there: JobsAndPods) -> None:
    await there.create("j", podReplacementPolicy="Failed")
    [pod] = await there.until_active(1)
    binding = {"metadata": {"name": name_of(pod)}, "target": {"kind": "Node", "name": "n"}}
    await there.pods.create(binding, name=name_of(pod), subresource="binding")
    await there.pods.delete(name_of(pod))
    await there.until_job("j", lambda status: status.get("terminating") == 1)
    assert [uid_of(each) for each in (await there.pods.list())["items"]] == [uid_of(pod)]
    await there.fail(pod)
    await there.until_active(1)
    status = await there.until_job("j", lambda status: status.get("failed") == 1 and status.get("active") == 1)
    assert status["terminating"] == 0


async def test_a_job_that_others_manage_is_left_alone(there: JobsAndPods) -> None:
    await there.create("theirs", managedBy="example.com/queue")
    await there.create("ours")
    await there.until_job("ours", lambda status: status.get("active") == 1)
    assert not (await there.jobs.get("theirs")).get("status")


async def test_orphans_are_adopted_and_pods_of_a_deleted_job_are_released(there: JobsAndPods) -> None:
    labels = {"mine": "yes"}
    container = {"name": "c", "image": "i"}
    await there.pods.create({"metadata": {"name": "stray", "labels": labels}, "spec": {"containers": [container]}})
    template: Json = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"manualSelector": True, "selector": {"matchLabels": labels}, "template": template}
    await there.jobs.create({"metadata": {"name": "j"}, "spec": spec})
    adopted = await until(there.pods, "stray", lambda pod: metadata(pod).get("ownerReferences"))
    assert metadata(adopted)["finalizers"] == [TRACKING]
    await there.until_job("j", lambda status: status.get("active") == 1)
    assert len((await there.pods.list())["items"]) == 1
    await there.jobs.delete("j", DeleteOptions(propagation_policy="Background"))
    await until_gone(there.jobs, "j")
    await until(there.pods, "stray", lambda pod: not metadata(pod).get("finalizers"))
