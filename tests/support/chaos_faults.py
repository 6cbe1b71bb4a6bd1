"""The faults that replicas and their etcd are put through: a row each. A fault lasts as long as its block does."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from etcd_process import EtcdProcess
from network_namespaces import HERE
from replicated_cluster import MEMBERS, Replica, ReplicatedCluster


async def _a_member(cluster: ReplicatedCluster, chance: random.Random, *, leads: bool) -> EtcdProcess:
    leader = await asyncio.to_thread(cluster.leader)
    return leader if leads else chance.choice([member for member in cluster.members if member is not leader])


def _all_nodes(cluster: ReplicatedCluster) -> list[str]:
    return [HERE, *MEMBERS, *(replica.name for replica in cluster.replicas)]


InForce: TypeAlias = Callable[[ReplicatedCluster, random.Random], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Fault:
    name: str
    in_force: InForce


def _member_cut_off(leads: bool, *, only_from_members: bool = False, one_way: bool = False) -> InForce:
    @asynccontextmanager
    async def in_force(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
        member = await _a_member(cluster, chance, leads=leads)
        others = MEMBERS if only_from_members else _all_nodes(cluster)
        with cluster.network.cut_off(others, [member.name], one_way=one_way):
            yield

    return in_force


def _member_signalled(leads: bool, number: signal.Signals) -> InForce:
    @asynccontextmanager
    async def in_force(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
        member = await _a_member(cluster, chance, leads=leads)
        if number is signal.SIGKILL:
            member.kill()
        else:
            member.send(number)
        yield
        if number is signal.SIGKILL:
            member.start()
        else:
            member.send(signal.SIGCONT)

    return in_force


def _replica_cut_off(nodes: Callable[[random.Random], list[str]]) -> InForce:
    @asynccontextmanager
    async def in_force(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
        with cluster.network.cut_off([_a_replica(cluster, chance).name], nodes(chance)):
            yield

    return in_force


def _a_replica(cluster: ReplicatedCluster, chance: random.Random) -> Replica:
    return chance.choice(cluster.replicas)


@asynccontextmanager
async def _replica_killed(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    replica = _a_replica(cluster, chance)
    replica.kill()
    yield
    await replica.start()


@asynccontextmanager
async def _replica_stopped(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    replica = _a_replica(cluster, chance)
    replica.send(signal.SIGSTOP)
    yield
    replica.send(signal.SIGCONT)


@asynccontextmanager
async def _members_apart(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    with cluster.network.cut_off(MEMBERS, MEMBERS):
        yield


@asynccontextmanager
async def _killed_with_its_answers(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    """What was asked of it last has taken effect, and those who asked learn only that the connection broke."""
    member = chance.choice(cluster.members)
    with cluster.network.cut_off([member.name], [replica.name for replica in cluster.replicas], one_way=True):
        await asyncio.sleep(1)
        member.kill()
    yield
    member.start()


@asynccontextmanager
async def _quorum_killed(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    killed = chance.sample(cluster.members, 2)
    for member in killed:
        member.kill()
    yield
    for member in killed:
        member.start()


@asynccontextmanager
async def _all_killed(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    for member in cluster.members:
        member.kill()
    yield
    for member in cluster.members:
        member.start()


@asynccontextmanager
async def _compaction_behind_a_partition(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
    with cluster.network.cut_off([_a_replica(cluster, chance).name], MEMBERS):
        yield
        await asyncio.to_thread(cluster.compact)


def _weather(*, delay: float = 0.0, loss: float = 0.0) -> InForce:
    @asynccontextmanager
    async def in_force(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
        with cluster.network.under(delay=delay, loss=loss):
            yield

    return in_force


def _both(first: InForce, second: InForce) -> InForce:
    @asynccontextmanager
    async def in_force(cluster: ReplicatedCluster, chance: random.Random) -> AsyncIterator[None]:
        async with first(cluster, chance), second(cluster, chance):
            yield

    return in_force


FAULTS = (
    Fault("etcd's leader cut off from everybody", _member_cut_off(True)),
    Fault("etcd's leader cut off from the other members only", _member_cut_off(True, only_from_members=True)),
    Fault("nothing reaches etcd's leader, but it is heard", _member_cut_off(True, one_way=True)),
    Fault("a follower of etcd cut off from everybody", _member_cut_off(False)),
    Fault("a follower of etcd cut off from the other members only", _member_cut_off(False, only_from_members=True)),
    Fault("all members of etcd cut off from each other", _members_apart),
    Fault("a replica cut off from etcd", _replica_cut_off(lambda _: list(MEMBERS))),
    Fault("a replica cut off from one member of etcd", _replica_cut_off(lambda chance: [chance.choice(MEMBERS)])),
    Fault("a replica cut off from its clients", _replica_cut_off(lambda _: [HERE])),
    Fault("a replica cut off from etcd, and a compaction meanwhile", _compaction_behind_a_partition),
    Fault("every packet 80 ms late", _weather(delay=0.08)),
    Fault("one packet in ten lost", _weather(loss=0.1)),
    Fault(
        "etcd's leader cut off from everybody, and every packet 40 ms late, one in twenty lost",
        _both(_member_cut_off(True), _weather(delay=0.04, loss=0.05)),
    ),
    Fault("etcd's leader killed (SIGKILL)", _member_signalled(True, signal.SIGKILL)),
    Fault("a follower of etcd killed (SIGKILL)", _member_signalled(False, signal.SIGKILL)),
    Fault("a member of etcd killed (SIGKILL) whose last answers were lost", _killed_with_its_answers),
    Fault("two members of three killed (SIGKILL)", _quorum_killed),
    Fault("all members killed (SIGKILL)", _all_killed),
    Fault("etcd's leader stopped (SIGSTOP)", _member_signalled(True, signal.SIGSTOP)),
    Fault("a follower of etcd stopped (SIGSTOP)", _member_signalled(False, signal.SIGSTOP)),
    Fault("a replica killed (SIGKILL)", _replica_killed),
    Fault("a replica stopped (SIGSTOP)", _replica_stopped),
)
