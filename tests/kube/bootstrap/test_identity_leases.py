"""The leases by which servers on one store know of each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.kube.bootstrap.identity_lease import (
    IDENTITY_LABEL,
    NAMESPACE,
    IdentityLease,
    IdentityLeaseGarbageCollector,
    server_id,
)
from pilothouse.machinery.objects import Json, name_of


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def lease(leases: OwnAccess, time: Time) -> IdentityLease:
    return IdentityLease(leases, host="vm", clock=time)


async def _read(leases: OwnAccess, lease: IdentityLease) -> Json | None:
    return await leases.get(lease.name, namespace=NAMESPACE)


def test_the_name_is_the_one_that_kube_apiserver_gives_itself_on_this_host() -> None:
    assert server_id("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


async def test_a_renewal_moves_the_time_and_puts_the_labels_right(
    leases: OwnAccess, lease: IdentityLease, time: Time
) -> None:
    await lease.renew()
    made = await _read(leases, lease)
    assert made is not None
    await leases.update(made, lambda obj: obj["metadata"].update(labels={"mine": "stays"}))
    time.moment += timedelta(seconds=10)
    await lease.renew()
    found = await _read(leases, lease)
    assert found is not None
    assert found["spec"] == made["spec"] | {"renewTime": "2026-03-01T12:00:10.250000Z"}
    assert found["metadata"]["labels"] == {"mine": "stays"} | made["metadata"]["labels"]
    assert "annotations" not in found["metadata"], "peers proxy requests only to servers that publish an address"


async def test_a_lease_that_was_deleted_is_made_again(leases: OwnAccess, lease: IdentityLease) -> None:
    await lease.renew()
    await leases.delete(lease.name, namespace=NAMESPACE)
    await lease.renew()
    assert await _read(leases, lease) is not None


async def test_a_server_that_stopped_renews_nothing(leases: OwnAccess, lease: IdentityLease) -> None:
    await lease.renew()
    await lease.stop()
    await lease.renew()
    assert await _read(leases, lease) is None


def _foreign(name: str, *, labels: dict[str, str], **spec: object) -> Json:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}


async def test_only_leases_of_servers_that_are_gone_are_collected(leases: OwnAccess, time: Time) -> None:
    hour_ago, lately = "2026-03-01T11:00:00.000000Z", "2026-03-01T11:30:00.000000Z"
    for lease in (
        _foreign("expired", labels=IDENTITY_LABEL, renewTime=hour_ago, leaseDurationSeconds=3600),
        _foreign("alive", labels=IDENTITY_LABEL, renewTime=lately, leaseDurationSeconds=3600),
        _foreign("timeless", labels=IDENTITY_LABEL, leaseDurationSeconds=3600),
        _foreign("endless", labels=IDENTITY_LABEL, renewTime=lately),
        _foreign("leader-election", labels={}, renewTime=hour_ago, leaseDurationSeconds=15),
    ):
        await leases.create(lease)
    await IdentityLeaseGarbageCollector(leases, clock=time).collect()
    assert sorted(name_of(lease) for lease in await leases.list()) == ["alive", "leader-election"]
