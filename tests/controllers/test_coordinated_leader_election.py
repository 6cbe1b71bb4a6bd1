"""Coordinated leader election: the server chooses the leader among those who stand as candidates for a lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from awaiting import until, until_gone
from patience import PATIENCE
from prometheus_client import CollectorRegistry
from whole_server import whole_server

from pilothouse.client import Client, ElectionTimes, Json, LeaderElector, LeaseCandidate, LeaseLock
from pilothouse.client.clock import cancelled
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.leaderelection.candidates import Candidate, DifferentStrategies, best_leader, best_strategy
from pilothouse.controllers.leaderelection.controller import collect_expired_candidates, with_elected
from pilothouse.machinery.times import format_micro_time, format_time

GATED: Any = {"feature_gates": "CoordinatedLeaderElection=true", "runtime_config": "coordination.k8s.io/v1beta1=true"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with whole_server(**GATED) as api, api.client() as client:
        yield client


def candidate(name: str, emulation: str = "1.36.0", binary: str = "1.36.0", **spec: Any) -> Json:
    versions = {"emulationVersion": emulation, "binaryVersion": binary}
    spec = {"leaseName": "lock", "strategy": "OldestEmulationVersion", **versions, **spec}
    spec.setdefault("renewTime", format_micro_time(datetime.now(UTC)))
    return {"metadata": {"name": name}, "spec": spec}


def standing(name: str, emulation: str, binary: str = "1.36.0", *, age: int = 0, strategy: str = "S") -> Candidate:
    obj = candidate(name, emulation, binary, strategy=strategy)
    obj["metadata"]["creationTimestamp"] = format_time(NOW - timedelta(seconds=age))
    return Candidate(obj, NOW, None)


async def test_the_oldest_emulated_version_leads_and_a_holder_that_renews_is_asked_to_make_room(client: Client) -> None:
    candidates = client.resource("coordination.k8s.io/v1beta1", "leasecandidates", namespace="default")
    leases = client.resource("coordination.k8s.io/v1", "leases", namespace="default")
    await candidates.create(candidate("b"))
    await until(leases, "lock", lambda lease: lease["spec"].get("holderIdentity") == "b")
    lease = await leases.get("lock")
    assert (lease["spec"]["strategy"], lease["spec"]["leaseDurationSeconds"]) == ("OldestEmulationVersion", 5)
    assert lease["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    await candidates.create(candidate("a", emulation="1.35.0"))
    await until(leases, "lock", lambda lease: lease["spec"].get("preferredHolder") == "a")
    assert (await leases.get("lock"))["spec"]["holderIdentity"] == "b"


async def test_stale_candidates_are_pinged_and_a_responding_candidate_is_elected(
    client: Client,
) -> None:
    candidates = client.resource("coordination.k8s.io/v1beta1", "leasecandidates", namespace="default")
    leases = client.resource("coordination.k8s.io/v1", "leases", namespace="default")
    await candidates.create(candidate("a", renewTime=format_micro_time(datetime.now(UTC) - timedelta(minutes=1))))
    await until(candidates, "a", lambda found: found["spec"].get("pingTime"))
    await candidates.patch("a", {"spec": {"renewTime": format_micro_time(datetime.now(UTC))}})
    await until(leases, "lock", lambda lease: lease["spec"].get("holderIdentity") == "a")


async def test_candidates_of_programs_that_are_gone_are_deleted(client: Client) -> None:
    candidates = client.resource("coordination.k8s.io/v1beta1", "leasecandidates", namespace="default")
    await candidates.create(candidate("gone", renewTime=format_micro_time(datetime.now(UTC) - timedelta(hours=1))))
    await candidates.create(candidate("here"))
    context = ControllerContext(client, CollectorRegistry())
    collecting = asyncio.create_task(collect_expired_candidates(context))
    await until_gone(candidates, "gone")
    assert (await candidates.get("here"))["metadata"]["name"] == "here"
    await cancelled(collecting)
    await context.close()


def test_candidates_rank_by_emulation_version_then_binary_version_then_age() -> None:
    newer, older = standing("newer", "1.36.0"), standing("older", "1.35.0")
    assert best_leader([newer, older]) is older
    old_binary = standing("old", "1.35.0", binary="1.35.0")
    assert best_leader([newer, older, old_binary]) is old_binary
    first = standing("first", "1.35.0", binary="1.35.0", age=60)
    assert best_leader([old_binary, first]) is first
    assert best_leader([standing("unknown", "")]) is None


def test_the_newest_binary_determines_the_strategy_and_equal_binaries_must_agree() -> None:
    old, new = standing("old", "1.35.0", "1.35.0", strategy="A"), standing("new", "1.35.0", "1.36.0", strategy="B")
    assert best_strategy([old, new]) == "B"
    with pytest.raises(DifferentStrategies, match="received differing strategies B, C"):
        best_strategy([new, standing("other", "1.35.0", "1.36.0", strategy="C")])


def test_an_expired_lease_passes_to_the_elected_candidate() -> None:
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 5, "acquireTime": "x", "preferredHolder": "y"}
    lease = {"spec": {**spec, "renewTime": format_micro_time(NOW - timedelta(seconds=6))}}
    assert with_elected(lease, "S", "me", NOW)["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 5,
        "renewTime": format_micro_time(NOW),
        "strategy": "S",
    }


async def test_an_unknown_strategy_is_rejected() -> None:
    spec = {"strategy": "Oldest"}
    async with whole_server(feature_gates=GATED["feature_gates"]) as api:
        answer = await api.request("POST", LEASES, {"metadata": {"name": "x"}, "spec": spec})
        alone = await api.request("POST", LEASES, {"metadata": {"name": "x"}, "spec": {"preferredHolder": "me"}})
        kept = await api.request(
            "POST", LEASES, {"metadata": {"name": "x"}, "spec": {"strategy": "a.b/c", "preferredHolder": "me"}}
        )
    why = 'spec.strategy.strategy: Unsupported value: "Oldest": supported values: "OldestEmulationVersion"'
    assert (answer.status, why in answer.json["message"]) == (422, True)
    assert "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined" in alone.json["message"]
    assert (kept.status, kept.json["spec"]) == (201, {"strategy": "a.b/c", "preferredHolder": "me"})


async def test_a_candidate_is_elected_answers_when_asked_and_makes_room_for_a_better_one(client: Client) -> None:
    leases = client.resource("coordination.k8s.io/v1", "leases", namespace="default")
    candidates = client.resource("coordination.k8s.io/v1beta1", "leasecandidates", namespace="default")
    me = LeaseCandidate(client, namespace="default", name="new", lease_name="lock", binary_version="1.36.0")
    lock = LeaseLock(client, namespace="default", name="lock", identity="new")
    times = ElectionTimes(lease_duration=15, renew_deadline=1.0, retry_period=0.05)
    elector, leads = LeaderElector(lock, coordinated=True, times=times, release_on_cancel=False), asyncio.Event()

    async def lead() -> None:
        leads.set()
        await asyncio.Event().wait()

    standing, electing = asyncio.create_task(me.run()), asyncio.create_task(elector.run(lead))
    await leads.wait()
    held = await leases.get("lock")
    assert (held["spec"]["holderIdentity"], held["spec"]["leaseDurationSeconds"]) == ("new", 15)
    asked = format_micro_time(datetime.now(UTC) + timedelta(milliseconds=1))
    await candidates.patch("new", {"spec": {"pingTime": asked}})
    await until(candidates, "new", lambda found: found["spec"]["renewTime"] > asked)
    await candidates.create(candidate("old", emulation="1.35.0"))
    await until(leases, "lock", lambda lease: lease["spec"].get("preferredHolder") == "old")
    await asyncio.wait_for(electing, PATIENCE)
    await cancelled(standing)
