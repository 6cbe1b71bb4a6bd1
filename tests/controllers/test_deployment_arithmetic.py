"""How a deployment sizes, numbers and judges its replica sets, without any server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pilothouse.client import Json, name_of
from pilothouse.controllers.deployment.new_replica_set import new_replica_set, replica_set_name
from pilothouse.controllers.deployment.replica_sets import (
    HISTORY,
    REVISION,
    Fenceposts,
    ReplicaSets,
    active_or_latest,
    annotations_of_new_set,
    fenceposts,
    last_revision,
    max_revision,
    max_scaled_down,
    new_set_size,
    resolve,
    same_template,
    sorted_out,
    total_terminating,
)
from pilothouse.controllers.deployment.rollouts import dispensable, is_saturated, proportional_sizes
from pilothouse.controllers.deployment.status import (
    is_complete,
    is_progressing,
    is_timed_out,
    new_condition,
    remove_condition,
    rollout_status,
    seconds_until_check,
    set_condition,
)
from pilothouse.kinds.conditions import find_in

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(seconds=700)
MAX_INT32 = 2**31 - 1


def deployment(
    replicas: int = 10, surge: int | str = 0, unavailable: int | str = 0, *, kind: str = "RollingUpdate", **more: object
) -> Json:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": kind} | ({"rollingUpdate": rolling} if kind == "RollingUpdate" else {})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"replicas": replicas, "strategy": strategy, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    meta = {"name": "web", "namespace": "ns", "uid": "d", "generation": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": spec | {"progressDeadlineSeconds": 600} | more,
        "status": {},
    }


def replica_set(name: str, replicas: int, *, available: int = 0, hour: int = 0, **annotations: str) -> Json:
    notes = {f"deployment.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    created = f"2026-05-01T{hour:02}:00:00Z"
    meta = {"name": name, "uid": name, "creationTimestamp": created, "annotations": notes}
    status = {"replicas": replicas, "availableReplicas": available}
    return {"metadata": meta, "spec": {"replicas": replicas, "template": {}}, "status": status}


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "resolved"),
    [
        ("0%", "0%", 0, (0, 1)),
        ("39%", "39%", 10, (4, 3)),
        ("0%", "1%", 2, (0, 1)),
        ("1%", "25%", 2, (1, 0)),
        ("1%", "0%", 1, (1, 0)),
        (3, 2, 10, (3, 2)),
        ("25%", "25%", 4, (1, 1)),
        ("100%", "0%", 7, (7, 0)),
    ],
)
def test_surges_are_rounded_up_and_absences_down(
    surge: int | str, unavailable: int | str, desired: int, resolved: tuple[int, int]
) -> None:
    assert resolve(surge, unavailable, desired) == Fenceposts(*resolved)


def test_no_more_can_be_missing_than_are_wanted_and_recreate_leaves_no_room() -> None:
    assert fenceposts(deployment(2, 0, 5)).unavailable == 2
    assert fenceposts(deployment(0, 0, 5)).unavailable == 0
    assert fenceposts(deployment(5, kind="Recreate")) == Fenceposts(0, 0)


@pytest.mark.parametrize(
    ("replicas", "surge", "old", "new", "wanted"),
    [(10, 0, 10, 0, 0), (10, 2, 10, 0, 2), (10, 2, 5, 0, 7), (10, 2, 10, 2, 2), (10, 2, 0, 5, 10), (10, 5, 2, 9, 10)],
)
def test_the_new_set_grows_as_far_as_the_surge_allows(
    replicas: int, surge: int, old: int, new: int, wanted: int
) -> None:
    sets = [replica_set("old", old), replica_set("new", new)]
    assert new_set_size(deployment(replicas, surge), sets, new) == wanted
    assert new_set_size(deployment(replicas, kind="Recreate"), sets, new) == replicas


def test_unavailable_new_pods_prevent_scaling_down_available_pods() -> None:
    rolling = deployment(10, 3, 2)
    crashing, working = replica_set("new", 5), replica_set("old", 8, available=8)
    assert max_scaled_down(rolling, crashing, [working]) == 0
    assert max_scaled_down(rolling, replica_set("new", 5, available=5), [working]) == 5
    assert max_scaled_down(rolling, replica_set("newer", 0), [working, crashing]) == 5


@pytest.mark.parametrize(
    ("replicas", "before", "sizes", "scaled"),
    [
        (12, 10, (10,), (12,)),
        (5, 10, (10,), (5,)),
        (12, 10, (5, 5), (6, 6)),
        (4, 10, (5, 5), (2, 2)),
        (20, 10, (8, 2), (16, 4)),
        (0, 10, (8, 2), (0, 0)),
        (11, 10, (2, 8), (2, 9)),
        (30, 10, (3, 3, 4), (9, 9, 12)),
        (10, 10, (6, 4), (6, 4)),
    ],
)
def test_sets_are_scaled_in_proportion(
    replicas: int, before: int, sizes: tuple[int, ...], scaled: tuple[int, ...]
) -> None:
    """Given from old to new; all were sized when the deployment could have `before` pods."""
    sets = [replica_set(f"s{n}", size, hour=n, max_replicas=str(before)) for n, size in enumerate(sizes)]
    resized = {name_of(each.replica_set): each.size for each in proportional_sizes(deployment(replicas), sets)}
    assert tuple(resized[f"s{n}"] for n in range(len(sizes))) == scaled


def test_the_newest_of_equal_sets_grows_first_and_the_oldest_shrinks_first() -> None:
    sets = [replica_set("old", 5, hour=1, max_replicas="10"), replica_set("new", 5, hour=2, max_replicas="10")]
    grown, shrunk = proportional_sizes(deployment(11), sets), proportional_sizes(deployment(9), sets)
    assert [(name_of(each.replica_set), each.size) for each in grown] == [("new", 6), ("old", 5)]
    assert [(name_of(each.replica_set), each.size) for each in shrunk] == [("old", 4), ("new", 5)]


def test_a_set_that_does_not_know_how_large_it_was_is_measured_by_the_status() -> None:
    sets = [replica_set("old", 5, max_replicas="nonsense"), replica_set("new", 5, hour=1, max_replicas="0")]
    scaled = deployment(20)
    assert {each.size for each in proportional_sizes(scaled | {"status": {"replicas": 10}}, sets)} == {10}
    assert sorted(each.size for each in proportional_sizes(scaled, sets)) == [5, 15]


def test_only_the_set_that_has_pods_or_the_newest_is_scaled_alone() -> None:
    old, new = replica_set("old", 0, hour=1), replica_set("new", 0, hour=2)
    assert active_or_latest(ReplicaSets(None)) is None
    assert active_or_latest(ReplicaSets(new, [old])) is new
    assert active_or_latest(ReplicaSets(None, [new, old])) is new
    assert active_or_latest(ReplicaSets(new, [full := replica_set("full", 1)])) is full
    assert active_or_latest(ReplicaSets(replica_set("n", 1), [replica_set("o", 1)])) is None


def test_a_set_is_saturated_when_it_has_all_pods_and_knows_it() -> None:
    assert is_saturated(deployment(5), replica_set("s", 5, available=5, desired_replicas="5"))
    assert not is_saturated(deployment(5), replica_set("s", 5, available=4, desired_replicas="5"))
    assert not is_saturated(deployment(5), replica_set("s", 5, available=5, desired_replicas="4"))
    assert not is_saturated(deployment(5), None)


def test_templates_are_compared_without_their_hash_and_the_oldest_match_is_new() -> None:
    plain = deployment()
    of_set = new_replica_set(plain, ReplicaSets(None), 1)["spec"]["template"]
    assert same_template(plain["spec"]["template"], of_set)
    assert not same_template(plain["spec"]["template"], {**of_set, "spec": {}})
    older, newer, other = (replica_set(name, 1, hour=hour) for name, hour in (("a", 1), ("b", 2), ("c", 0)))
    for each in (older, newer):
        each["spec"]["template"] = of_set
    sets = sorted_out(plain, [newer, other, older])
    assert sets.new is older
    assert sets.old == [other, newer]


def test_the_hash_depends_on_collisions_and_long_names_are_cut() -> None:
    plain = deployment()
    first, second = new_replica_set(plain, ReplicaSets(None), 1), None
    second = new_replica_set(plain | {"status": {"collisionCount": 1}}, ReplicaSets(None), 1)
    assert name_of(first) != name_of(second)
    assert replica_set_name("x" * 300, "abc") == "x" * 249 + "-abc"


def test_revisions_grow_and_are_remembered_within_limits() -> None:
    sets = [replica_set("a", 0, revision="3"), replica_set("b", 0, revision="7"), replica_set("c", 0, revision="x")]
    assert (max_revision(sets), last_revision(sets), last_revision(sets[:1])) == (7, 3, 0)
    back = annotations_of_new_set(deployment(), sets[0], 8)
    assert (back[REVISION], back[HISTORY]) == ("8", "3")
    again = annotations_of_new_set(deployment(), {"metadata": {"annotations": back}}, 9)
    assert (again[REVISION], again[HISTORY]) == ("9", "3,8")
    assert annotations_of_new_set(deployment(), sets[1], 5)[REVISION] == "7"
    assert annotations_of_new_set(deployment(), sets[2], 5)[REVISION] == "x"
    long = replica_set("d", 0, revision="1000", revision_history=",".join(["100"] * 500))
    history = annotations_of_new_set(deployment(), long, 1001)[HISTORY]
    assert len(history) <= 2000
    assert history.endswith(",100,1000")


def test_annotations_are_copied_except_controller_annotations() -> None:
    noted = deployment()
    own = {REVISION: "4", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    noted["metadata"]["annotations"] = {"kubernetes.io/change-cause": "why", **own}
    made = new_replica_set(noted, ReplicaSets(None), 5)["metadata"]["annotations"]
    assert made == {
        "kubernetes.io/change-cause": "why",
        REVISION: "5",
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "10",
    }


def test_a_condition_that_says_the_same_stays_and_a_new_reason_keeps_the_time_of_the_transition() -> None:
    status: Json = {}
    set_condition(status, new_condition("Progressing", "True", "A", "a", EARLIER))
    set_condition(status, new_condition("Progressing", "True", "A", "other", NOW))
    assert status["conditions"] == [new_condition("Progressing", "True", "A", "a", EARLIER)]
    set_condition(status, new_condition("Progressing", "True", "B", "b", NOW))
    (changed,) = status["conditions"]
    assert changed["lastTransitionTime"] < changed["lastUpdateTime"]
    set_condition(status, new_condition("Progressing", "False", "C", "c", NOW))
    assert find_in(status, "Progressing") == new_condition("Progressing", "False", "C", "c", NOW)
    remove_condition(status, "Progressing")
    assert status == {}


def test_terminating_replicas_are_summed_only_if_every_set_reports_them() -> None:
    told: Json = {"status": {"terminatingReplicas": 2, "observedGeneration": 1}}
    unseen: Json = {"status": {"replicas": 0}}
    silent: Json = {"status": {"replicas": 0, "observedGeneration": 1}}
    assert total_terminating([told, unseen, told]) == 4
    assert total_terminating([told, silent]) is None


def test_a_rollout_is_complete_when_only_new_pods_are_there_and_available() -> None:
    done = {"updatedReplicas": 10, "replicas": 10, "availableReplicas": 10, "observedGeneration": 1}
    assert is_complete(deployment(), done)
    assert not is_complete(deployment(), done | {"replicas": 11})
    assert not is_complete(deployment(), done | {"availableReplicas": 9})
    assert not is_complete(deployment(), done | {"observedGeneration": 0})
    assert is_progressing(done, done | {"readyReplicas": 1})
    assert is_progressing(done | {"replicas": 12}, done | {"replicas": 11})
    assert not is_progressing(done, done)


def progressing(reason: str, since: datetime = EARLIER) -> Json:
    return {"conditions": [new_condition("Progressing", "True", reason, "", since)]}


def test_rollout_without_progress_past_its_deadline_has_timed_out() -> None:
    assert is_timed_out(deployment(), progressing("ReplicaSetUpdated"), NOW)
    assert not is_timed_out(deployment(), progressing("ReplicaSetUpdated", NOW), NOW)
    assert not is_timed_out(deployment(), progressing("NewReplicaSetAvailable"), NOW)
    assert is_timed_out(deployment(), progressing("ProgressDeadlineExceeded", NOW), NOW)
    assert not is_timed_out(deployment(progressDeadlineSeconds=MAX_INT32), progressing("ReplicaSetUpdated"), NOW)
    assert not is_timed_out(deployment(), {}, NOW)


def test_a_rollout_is_checked_when_its_deadline_will_have_passed() -> None:
    waiting = deployment() | {"status": progressing("ReplicaSetUpdated", NOW - timedelta(seconds=180))}
    assert seconds_until_check(waiting, {}, NOW) == 420.0
    done = {"updatedReplicas": 10, "replicas": 10, "availableReplicas": 10, "observedGeneration": 1}
    assert seconds_until_check(waiting, done, NOW) is None
    assert seconds_until_check(deployment(), {}, NOW) is None


def test_progress_renews_the_time_that_the_deadline_is_counted_from() -> None:
    rolling = deployment(2) | {"status": progressing("ReplicaSetUpdated")}
    status = rollout_status(rolling, ReplicaSets(replica_set("new", 1)), NOW)
    condition = find_in(status, "Progressing")
    assert condition is not None
    assert (condition["lastTransitionTime"], condition["lastUpdateTime"]) == (
        "2026-05-01T11:48:20Z",
        "2026-05-01T12:00:00Z",
    )
    assert condition["message"] == 'ReplicaSet "new" is progressing.'
    without = deployment(2, progressDeadlineSeconds=MAX_INT32) | {"status": progressing("ReplicaSetUpdated")}
    assert find_in(rollout_status(without, ReplicaSets(None), NOW), "Progressing") is None


def test_the_oldest_empty_sets_beyond_the_limit_are_dispensable() -> None:
    sets = [replica_set(f"s{n}", 0, revision=str(n)) for n in (3, 1, 2)]
    assert [name_of(each) for each in dispensable(deployment(revisionHistoryLimit=1), sets)] == ["s1", "s2"]
    assert dispensable(deployment(revisionHistoryLimit=MAX_INT32), sets) == []
    assert dispensable(deployment(revisionHistoryLimit=3), sets) == []
    sets[1]["status"]["replicas"] = 1
    assert [name_of(each) for each in dispensable(deployment(revisionHistoryLimit=0), sets)] == ["s2", "s3"]
