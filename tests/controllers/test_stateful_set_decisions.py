"""The rules of StatefulSets that need no server: identities, claims and their owners, revisions, versions written."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.history import data_hash, oldest_first, revision_name
from pilothouse.controllers.resources import PODS
from pilothouse.controllers.statefulset.claim_control import (
    has_unexpected_controller,
    is_owner_up_to_date,
    wanted_owner,
    with_right_owner,
)
from pilothouse.controllers.statefulset.controller import WrittenVersions
from pilothouse.controllers.statefulset.convergence import max_unavailable
from pilothouse.controllers.statefulset.identity import is_member, ordinals, parent_and_ordinal
from pilothouse.controllers.statefulset.members import Members
from pilothouse.machinery.objects import Json

RETAIN, DELETE = "Retain", "Delete"


def stateful_set(when_deleted: str = RETAIN, when_scaled: str = RETAIN, uid: str = "set") -> Json:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    spec = {"replicas": 2, "persistentVolumeClaimRetentionPolicy": policy}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "uid": uid}, "spec": spec}


def pod(ordinal: int, uid: str = "pod") -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{ordinal}", "uid": uid}}


def claim(*owners: Json) -> Json:
    return {"metadata": {"name": "data-web-0", "ownerReferences": list(owners)}}


def reference(obj: Json, **changed: Any) -> Json:
    meta = obj["metadata"]
    names = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**names, "controller": True, **changed}


@pytest.mark.parametrize(
    ("name", "parent", "ordinal"),
    [
        ("web-0", "web", 0),
        ("my-web-12", "my-web", 12),
        ("web-012", "web", 12),
        ("web", "", -1),
        ("web-x", "", -1),
        ("web-2147483647", "web", 2147483647),
        ("web-2147483648", "web", -1),
        ("web-99999999999999999999", "web", -1),
    ],
)
def test_a_pod_name_yields_the_set_and_the_ordinal(name: str, parent: str, ordinal: int) -> None:
    found: Json = {"metadata": {"name": name}}
    assert parent_and_ordinal(found) == (parent, ordinal)
    assert is_member(stateful_set(), found) is (parent == "web")


def test_ordinals_begin_where_the_set_says() -> None:
    assert ordinals({"spec": {"replicas": 3, "ordinals": {"start": 4}}}) == range(4, 7)
    assert ordinals({"spec": {}}) == range(1)


def test_a_set_of_two_billion_is_a_range_and_the_pods_that_exist() -> None:
    owner = stateful_set() | {"spec": {"replicas": 2**31 - 1, "ordinals": {"start": 3}}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    known = [pod(ordinal) | {"status": ready} for ordinal in (9, 3, 4, 2, 1)]
    members = Members.of(owner, known, datetime.now(UTC))
    assert [*members.replicas] == [3, 4, 9]
    assert [each["metadata"]["name"] for each in members.condemned] == ["web-2", "web-1"]
    assert [*islice(members.absent(), 5)] == [5, 6, 7, 8, 10]
    assert members.unavailable == 2**31 - 4
    assert [each["metadata"]["name"] for each in members.from_partition(1)] == ["web-9", "web-4"]
    assert members.from_partition(2**31 - 1) == []


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "of_a_replica", "of_a_condemned_pod"),
    [
        (RETAIN, RETAIN, "", ""),
        (DELETE, RETAIN, "StatefulSet", "StatefulSet"),
        (RETAIN, DELETE, "", "Pod"),
        (DELETE, DELETE, "StatefulSet", "Pod"),
    ],
)
def test_claim_owners_follow_the_retention_policy_table(
    when_deleted: str, when_scaled: str, of_a_replica: str, of_a_condemned_pod: str
) -> None:
    owner = stateful_set(when_deleted, when_scaled)
    for ordinal, kind in ((1, of_a_replica), (2, of_a_condemned_pod)):
        member = pod(ordinal)
        assert (wanted_owner(owner, member) or {"kind": ""})["kind"] == kind
        for before in (claim(), claim(reference(owner)), claim(reference(member), reference(owner))):
            after = with_right_owner(before, owner, member)
            assert [each["kind"] for each in after["metadata"]["ownerReferences"]] == ([kind] if kind else [])
            assert is_owner_up_to_date(after, owner, member)
            assert is_owner_up_to_date(before, owner, member) is (
                [each["kind"] for each in before["metadata"]["ownerReferences"]] == ([kind] if kind else [])
            )


def test_a_claim_that_another_controls_or_that_is_left_from_others_is_not_touched() -> None:
    owner, member = stateful_set(DELETE, RETAIN), pod(0)
    other = {"apiVersion": "x/v1", "kind": "Foo", "name": "f", "uid": "f", "controller": True}
    assert has_unexpected_controller(claim(other), owner, member)
    assert not has_unexpected_controller(claim(other), stateful_set(), member)
    assert is_owner_up_to_date(claim(other), owner, member)
    assert not is_owner_up_to_date(claim(other, reference(owner)), owner, member)
    assert with_right_owner(claim(other, reference(owner)), owner, member)["metadata"]["ownerReferences"] == [other]
    assert is_owner_up_to_date(claim(reference(owner, uid="former")), owner, member)
    assert not is_owner_up_to_date(claim(reference(owner, controller=False)), owner, member)


@pytest.mark.parametrize(("value", "most"), [(None, 1), (3, 3), ("25%", 2), ("5%", 1), ("100%", 10)])
def test_an_update_may_take_away_one_pod_at_least(value: int | str | None, most: int) -> None:
    assert max_unavailable(value, 10) == most


def test_a_revision_has_the_hash_that_upstream_gives_it() -> None:
    container = {
        "name": "c",
        "image": "one",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 10,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    meta = {"labels": {"app": "web"}, "annotations": {"a": "<b>&é"}}
    data = {"spec": {"template": {"metadata": meta, "spec": spec, "$patch": "replace"}}}
    assert data_hash(data, 0) == "7fdcb86bb5", "as kube-controller-manager v1.36.4 has it"
    assert data_hash(data, 1) != data_hash(data, 0)
    assert len(revision_name("x" * 253, "h" * 10)) == 234


def test_revisions_are_ordered_by_number_then_age_then_name() -> None:
    def revision(name: str, number: int, created: str = "2026-01-01T00:00:00Z") -> Json:
        return {"metadata": {"name": name, "creationTimestamp": created}, "revision": number}

    later = revision("a", 1, "2026-01-02T00:00:00Z")
    ordered = oldest_first([revision("c", 2), later, revision("d", 1), revision("b", 1)])
    assert [each["metadata"]["name"] for each in ordered] == ["b", "d", "a", "c"]


async def test_a_set_is_not_synced_until_the_caches_show_its_writes() -> None:
    class Informer:
        last_sync_resource_version = "4"
        indexer = Indexer()

    clock, informer = FakeClock(), Informer()
    versions = WrittenVersions({PODS: informer}, clock)  # type: ignore[dict-item]
    versions.wrote("default/web", PODS, {"metadata": {"resourceVersion": "7"}})
    assert not versions.are_seen("default/web")
    assert versions.are_seen("default/other")
    versions.saw(PODS, {"metadata": {"resourceVersion": "6"}})
    assert not versions.are_seen("default/web")
    versions.saw(PODS, {"metadata": {"resourceVersion": "8"}})
    assert versions.are_seen("default/web")
    versions.wrote("default/web", PODS, {"metadata": {"resourceVersion": "9"}})
    informer.last_sync_resource_version = "10"
    assert not versions.are_seen("default/web")
    clock.advance(6.0)
    assert versions.are_seen("default/web"), "no event came, but a list did"
