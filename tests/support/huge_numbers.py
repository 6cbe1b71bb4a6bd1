"""Every number in a spec that could cost work or memory in proportion: one row each, with a huge value.

for row in HUGE_NUMBERS: row.play(victim)      returns when the server has acted on the number, and forgotten it
"""

from __future__ import annotations

from collections.abc import Iterator

from huge_number import (
    APPS,
    BATCH,
    CORE,
    EXPONENT,
    HERE,
    INT32,
    INT64,
    REPLICAS,
    ZEROS,
    Acted,
    HugeNumber,
    a_job,
    an_object,
    has_pods,
    has_status,
    workload,
)
from huge_numbers_elsewhere import NUMBERS_ELSEWHERE, ORDINARY_NUMBERS


def _stateful_sets() -> Iterator[HugeNumber]:
    sets, seen = f"{APPS}statefulsets", has_status(f"{APPS}statefulsets/s", "observedGeneration")
    several = has_pods(3)
    claims = [
        {
            "metadata": {"name": "d"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ]
    retention = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    yield HugeNumber("replicas of a StatefulSet", [(sets, workload("s", replicas=REPLICAS))], seen)
    parallel = workload("s", replicas=REPLICAS, podManagementPolicy="Parallel")
    yield HugeNumber("replicas of a parallel StatefulSet", [(sets, parallel)], several, pods=EXPONENT)
    scaled = [("PATCH", f"{sets}/s/scale", {"spec": {"replicas": count}}) for count in (INT32, 1, REPLICAS, 0)]
    yield HugeNumber("replicas of a scale", [(sets, parallel)], several, scaled)
    start = {"ordinals": {"start": INT32 - 1000}, "podManagementPolicy": "Parallel"}
    yield HugeNumber("first ordinal", [(sets, workload("s", replicas=REPLICAS, **start))], several)
    with_claims = {"volumeClaimTemplates": claims, "persistentVolumeClaimRetentionPolicy": retention}
    claimed = workload("s", replicas=REPLICAS, podManagementPolicy="Parallel", **with_claims)
    yield HugeNumber("replicas with claims", [(sets, claimed)], several)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": INT32, "maxUnavailable": INT32}}
    limits = {"minReadySeconds": INT32, "revisionHistoryLimit": INT32}
    partition = workload("s", replicas=INT32, updateStrategy=rolling, **limits)
    yield HugeNumber("partition, minReadySeconds and history of a StatefulSet", [(sets, partition)], seen)


def _deployments() -> Iterator[HugeNumber]:
    deployments, several = f"{APPS}deployments", has_pods(3)
    limits = {"minReadySeconds": INT32 - 1, "progressDeadlineSeconds": INT32, "revisionHistoryLimit": INT32}
    many = [(deployments, workload("d", replicas=REPLICAS, **limits))]
    yield HugeNumber("replicas of a Deployment", many, several, pods=EXPONENT)
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": INT32, "maxUnavailable": INT32}}
    update = {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
    surging = [(deployments, workload("d", replicas=REPLICAS, strategy=surge))]
    yield HugeNumber("maxSurge and maxUnavailable", surging, several, [("PATCH", f"{deployments}/d", update)])
    percent = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": f"{ZEROS}100%", "maxUnavailable": f"{ZEROS}5%"}}
    percents = [(deployments, workload("d", replicas=2, strategy=percent))]
    yield HugeNumber("digits of a percentage", percents, has_status(f"{deployments}/d", "observedGeneration"))
    yield HugeNumber("replicas of a ReplicaSet", [(f"{APPS}replicasets", workload("r", replicas=INT32))], several)
    controller = workload("c", replicas=INT32)
    controller["spec"]["selector"] = {"app": "c"}
    controllers = f"{CORE}replicationcontrollers"
    yield HugeNumber("replicas of a ReplicationController", [(controllers, controller)], several)
    daemon_sets, rolling = f"{APPS}daemonsets", {"maxUnavailable": INT32, "maxSurge": 0}
    daemons = {"minReadySeconds": INT32, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    daemon_set = [(daemon_sets, workload("d", revisionHistoryLimit=INT32, **daemons))]
    seen = has_status(f"{daemon_sets}/d", "observedGeneration")
    yield HugeNumber("maxUnavailable and history of a DaemonSet", daemon_set, seen)
    yield from _autoscalers(deployments, several)


def _autoscalers(deployments: str, several: Acted) -> Iterator[HugeNumber]:
    policy = {"type": "Percent", "value": INT32, "periodSeconds": 1800}
    rules = {"policies": [policy, {**policy, "type": "Pods"}], "stabilizationWindowSeconds": 3600}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    metric = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": EXPONENT}}
    spec = {
        "scaleTargetRef": reference,
        "minReplicas": INT32 - 1,
        "maxReplicas": INT32,
        "behavior": {"scaleUp": rules, "scaleDown": rules},
        "metrics": [{"type": "Resource", "resource": metric}],
    }
    autoscaler = (f"/apis/autoscaling/v2{HERE}horizontalpodautoscalers", an_object("h", spec))
    yield HugeNumber("replicas of an autoscaler", [(deployments, workload("d", replicas=1)), autoscaler], several)
    budgets = f"/apis/policy/v1{HERE}poddisruptionbudgets"
    selector = {"selector": {"matchLabels": {"app": "d"}}}
    for value in (INT32, f"{ZEROS}100%"):
        budget = [
            (deployments, workload("d", replicas=1)),
            (budgets, an_object("b", {"minAvailable": value, **selector})),
        ]
        yield HugeNumber(
            f"minAvailable of a budget: {str(value)[:9]}", budget, has_status(f"{budgets}/b", "desiredHealthy")
        )


def _jobs() -> Iterator[HugeNumber]:
    jobs, several = f"{BATCH}jobs", has_pods(3)
    limits = {"backoffLimit": INT32, "activeDeadlineSeconds": INT64, "ttlSecondsAfterFinished": INT32}
    plain = a_job("j", completions=INT32, parallelism=INT32, **limits)
    yield HugeNumber("completions and parallelism", [(jobs, plain)], several)
    indexed = {"completionMode": "Indexed", "completions": INT32, "parallelism": 100_000, **limits}
    done = {"status": {"completedIndexes": "0-2000000000", "succeeded": 2_000_000_001}}
    status = [("PATCH", f"{jobs}/j/status", done)]
    yield HugeNumber("completions of an indexed Job", [(jobs, a_job("j", **indexed))], several, status)
    rules = {"rules": [{"succeededIndexes": "0-2000000000", "succeededCount": 2_000_000_000}]}
    yield HugeNumber("indexes of a success policy", [(jobs, a_job("j", **indexed, successPolicy=rules))], several)
    zeros = {"rules": [{"succeededIndexes": f"{ZEROS}1-{ZEROS}9"}]}
    yield HugeNumber("digits of an index", [(jobs, a_job("j", **indexed, successPolicy=zeros))], several)
    each = {"backoffLimitPerIndex": INT32, "maxFailedIndexes": 10_000}
    limited = a_job("j", **indexed | {"completions": 100_000, "parallelism": 10_000} | each)
    yield HugeNumber("backoffLimitPerIndex", [(jobs, limited)], several)
    yield from _cron_jobs(f"{BATCH}cronjobs")


def _cron_jobs(cron_jobs: str) -> Iterator[HugeNumber]:
    limits = {"startingDeadlineSeconds": INT64, "successfulJobsHistoryLimit": INT32, "failedJobsHistoryLimit": INT32}
    missed = {"status": {"lastScheduleTime": "1970-01-01T00:00:00Z"}}
    for schedule in ("* * * * *", "@every 1s", "@every 2540400h", "0 0 29 2 *"):
        spec = {
            "schedule": schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": a_job("")["spec"]},
            **limits,
        }
        then = [("PATCH", f"{cron_jobs}/c/status", missed), ("GET", f"{cron_jobs}/c", {})]
        yield HugeNumber(f"missed times of {schedule}", [(cron_jobs, an_object("c", spec))], then=then)
    steps = {"schedule": f"*/{INT64} * * * *", "jobTemplate": {"spec": a_job("")["spec"]}}
    yield HugeNumber("step of a schedule", [(cron_jobs, an_object("c", steps))])


HUGE_NUMBERS: tuple[HugeNumber, ...] = (*_stateful_sets(), *_deployments(), *_jobs(), *NUMBERS_ELSEWHERE)

LASTING: tuple[HugeNumber, ...] = tuple(
    row
    for row in HUGE_NUMBERS
    if row.name
    in (
        "replicas of a StatefulSet",
        "replicas of a ReplicaSet",
        "completions of an indexed Job",
        "missed times of * * * * *",
        "queues of a priority level",
    )
)
"""Rows whose objects can all be there at once, for a restart."""

__all__ = ["HUGE_NUMBERS", "LASTING", "ORDINARY_NUMBERS"]
