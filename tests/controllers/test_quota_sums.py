"""What quotas count, against sums and sets that are kept by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.client.cache.list_watch import SelectedListWatch
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.connect import loopback
from pilothouse.controllers.resourcequota.monitors import ObjectCounts, ObjectMonitor
from pilothouse.kube.admission.quota.pods import PodEvaluator
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

CPU = st.sampled_from(["1", "250m", "0.1", "2500u", "3"])
MEMORY = st.sampled_from(["1Gi", "128Mi", "1G", "4096", "1.5Gi"])
POD = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(["a", "b"]),
        "cpu": CPU,
        "memory": MEMORY,
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        "deadline": st.booleans(),
    }
)
NAMES = st.sampled_from(["x", "y", "z"])
NAMED = st.tuples(st.sampled_from(["a", "b"]), NAMES)
STEP = st.one_of(
    st.tuples(st.sampled_from(["add", "update", "delete"]), NAMED),
    st.tuples(st.just("replace"), st.sets(NAMED)),
)


def pod(index: int, drawn: Json) -> Json:
    resources = {"requests": {"cpu": drawn["cpu"], "memory": drawn["memory"]}}
    spec: Json = {"containers": [{"name": "c", "resources": resources}]}
    if drawn["deadline"]:
        spec["activeDeadlineSeconds"] = 5
    meta = {"name": f"pod-{index}", "namespace": drawn["namespace"]}
    return {"metadata": meta, "spec": spec, "status": {"phase": drawn["phase"]}}


def monitor_of(pods: list[Json]) -> ObjectMonitor:
    objects = loopback(lambda *_: None).resource("v1", "pods")  # type: ignore[arg-type]  # nothing is ever asked for
    informer = SharedIndexInformer(SelectedListWatch(objects))
    for each in pods:
        informer.indexer.add(each)
    return ObjectMonitor(PodEvaluator(), informer, lambda *_: None)


@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(POD, max_size=12), scope=st.sampled_from(["", "Terminating", "NotTerminating"]))
async def test_quota_usage_is_the_sum_over_its_namespace_and_scope(drawn: list[Json], scope: str) -> None:
    hard = {"requests.cpu": "1", "memory": "1", "pods": "1", "count/pods": "1"}
    quota: Json = {"metadata": {"namespace": "a"}, "spec": {"hard": hard, "scopes": [scope] if scope else []}}
    used = await monitor_of([pod(*each) for each in enumerate(drawn)]).usage(quota)
    scopes = {True: ("", "Terminating"), False: ("", "NotTerminating")}
    counted = [each for each in drawn if each["namespace"] == "a" and scope in scopes[each["deadline"]]]
    running = [each for each in counted if each["phase"] in ("Pending", "Running")]

    def total(name: str) -> Fraction:
        return sum((parse_quantity(each[name]).fraction for each in running), Fraction(0))

    assert {name: amount.fraction for name, amount in used.items()} == {
        "requests.cpu": total("cpu"),
        "memory": total("memory"),
        "pods": len(running),
        "count/pods": len(counted),
    }


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEP, max_size=20))
def test_counts_equal_the_number_of_names_and_every_deletion_is_reported(steps: list[Any]) -> None:
    model: set[tuple[str, str]] = set()
    told: set[str] = set()
    counts = ObjectCounts(told.add)
    for action, argument in steps:
        before = set(model)
        told.clear()
        if action == "replace":
            model = set(argument)
            counts.replace([named(*each) for each in model])
        else:
            getattr(counts, action)(named(*argument))
            (model.discard if action == "delete" else model.add)(argument)
        assert {namespace for namespace, _ in before - model} <= told
        for namespace in ("a", "b"):
            assert counts.in_namespace(namespace) == sum(1 for each, _ in model if each == namespace)


def named(namespace: str, name: str) -> Json:
    return {"metadata": {"namespace": namespace, "name": name}}
