"""Node ports: the bitmap against a model, its form in the store, and allocation by several servers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.core.services.port_set import (
    NotInitialized,
    PortAlreadyAllocated,
    PortNotInRange,
    PortRangeFull,
    PortSet,
    RangeMismatch,
)
from pilothouse.kube.core.services.portallocator import PortAllocator, PortOperation

PORTS = range(30000, 30064)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def allocator(store: SqliteStore) -> PortAllocator:
    made = PortAllocator(store, PORTS)
    await made.replace(await made.snapshot(), PortSet(PORTS))
    return made


@settings(max_examples=50)
@given(steps=st.lists(st.tuples(st.booleans(), st.sampled_from(PORTS))))
def test_a_port_set_behaves_like_a_set_and_survives_the_store(steps: list[tuple[bool, int]]) -> None:
    ports, model = PortSet(PORTS), set[int]()
    for add, port in steps:
        (ports.add if add else ports.discard)(port)
        (model.add if add else model.discard)(port)
    assert set(ports) == set(PortSet.decode(ports.encode())) == model
    assert len(ports) == len(model)


def test_the_stored_form_is_the_one_that_kube_apiserver_reads() -> None:
    ports = PortSet(range(30000, 32768))
    for port in (30000, 30009):
        ports.add(port)
    stored = orjson.loads(ports.encode())
    assert (stored["kind"], stored["apiVersion"]) == ("RangeAllocation", "v1")
    assert (stored["range"], stored["data"]) == ("30000-32767", "AgE=")


def test_free_ports_come_from_the_upper_part_until_it_is_full() -> None:
    ports, random, order = PortSet(PORTS), Random(3), []
    while (port := ports.next_free(random)) is not None:
        ports.add(port)
        order.append(port)
    assert sorted(order) == list(PORTS)
    assert set(order[-16:]) == set(PORTS[:16])


async def test_port_is_allocated_only_once(allocator: PortAllocator) -> None:
    await allocator.allocate(30000)
    with pytest.raises(PortAlreadyAllocated):
        await allocator.allocate(30000)
    await allocator.release(30000)
    await allocator.allocate(30000)


async def test_port_outside_the_range_is_rejected(allocator: PortAllocator) -> None:
    with pytest.raises(PortNotInRange, match="The range of valid ports is 30000-30063"):
        await allocator.allocate(80)


async def test_two_servers_never_hand_out_the_same_port(store: SqliteStore, allocator: PortAllocator) -> None:
    other = PortAllocator(store, PORTS)
    half = len(PORTS) // 2
    taken = await asyncio.gather(*(each.allocate_next() for each in (allocator, other) for _ in range(half)))
    assert sorted(taken) == list(PORTS)
    with pytest.raises(PortRangeFull):
        await other.allocate_next()


async def test_allocation_fails_before_the_first_repair(store: SqliteStore) -> None:
    with pytest.raises(NotInitialized):
        await PortAllocator(store, PORTS).allocate_next()


async def test_allocation_fails_if_the_stored_range_differs(store: SqliteStore, allocator: PortAllocator) -> None:
    with pytest.raises(RangeMismatch):
        await PortAllocator(store, range(40000, 40010)).allocate_next()


async def test_a_failed_write_gives_its_ports_back_and_keeps_the_old_ones(allocator: PortAllocator) -> None:
    await allocator.allocate(30001)
    operation = PortOperation(allocator, dry_run=False)
    await operation.allocate(30002)
    operation.give_up(30001)
    await operation.revert()
    assert list((await allocator.snapshot()).taken) == [30001]


async def test_a_successful_write_keeps_its_ports_and_gives_the_old_ones_back(allocator: PortAllocator) -> None:
    await allocator.allocate(30001)
    operation = PortOperation(allocator, dry_run=False)
    await operation.allocate(30002)
    operation.give_up(30001)
    await operation.commit()
    assert list((await allocator.snapshot()).taken) == [30002]


async def test_dry_run_allocates_nothing_but_detects_conflicts(allocator: PortAllocator) -> None:
    await allocator.allocate(30001)
    operation = PortOperation(allocator, dry_run=True)
    with pytest.raises(PortAlreadyAllocated):
        await operation.allocate(30001)
    assert [await operation.allocate_next(), await operation.allocate_next()] == [32769, 32770]
    await operation.commit()
    assert list((await allocator.snapshot()).taken) == [30001]
