"""Rounds of faults under load: in each, clients work through all replicas, one fault comes and goes, the replicas come
back, and what clients and watchers were told is checked."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from chaos_clients import Load, config_maps
from chaos_faults import Fault
from chaos_ledger import UNANSWERED, written
from chaos_watchers import Told, Watcher, check_watcher
from replicated_cluster import Replica, ReplicatedCluster

from pilothouse.client.wait import poll

_PATIENCE = 240.0
"""How many seconds replicas and watchers have to come back. A machine may be paused."""
_CALM = 0.3


@dataclass
class Figures:
    """Of all rounds with one fault."""

    rounds: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    reads: int = 0
    lost: int = 0
    stale: int = 0
    recoveries: list[float] = field(default_factory=list)  # from the fault's end until every replica has taken a write
    resumed: int = 0
    listed_again: int = 0


@dataclass
class ChaosRun:
    """`violations` says in words what must not have been; `figures` counts, by the fault's name."""

    cluster: ReplicatedCluster
    chance: random.Random
    violations: list[str] = field(default_factory=list)
    figures: dict[str, Figures] = field(default_factory=dict)
    _round: int = 0
    _seen: dict[int, Told] = field(default_factory=dict)
    _values: dict[tuple[str, str], int] = field(default_factory=dict)

    async def rounds(self, faults: Sequence[Fault], seconds: tuple[float, float]) -> None:
        """One round with each fault, which lasts between so many seconds."""
        replicas = self.cluster.replicas
        moving = [Watcher(replicas, index, bookmarks=index % 2 == 0) for index in range(2)]
        watchers = [*moving, *(Watcher([replica]) for replica in replicas)]
        following = [asyncio.create_task(watcher.follow_for_ever()) for watcher in watchers]
        try:
            for fault in faults:
                await self._play(fault, watchers, self.chance.uniform(*seconds))
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    async def _play(self, fault: Fault, watchers: list[Watcher], seconds: float) -> None:
        self._round += 1
        load = Load(self.cluster.replicas, self._round, self.chance)
        async with load.working():
            await asyncio.sleep(_CALM)
            async with fault.in_force(self.cluster, self.chance):
                await asyncio.sleep(seconds)
                end = time.monotonic()
            await self._recovered()
            recovery = time.monotonic() - end
            await poll(lambda: bool(load.ledger.acknowledged), interval=0.1, timeout=_PATIENCE)
        await load.read_all()
        await asyncio.wait_for(self._reached_by(watchers), _PATIENCE)
        await asyncio.to_thread(load.ledger.check)
        self._account(fault, load, watchers, recovery)

    async def _recovered(self) -> None:
        """Every replica takes writes."""
        writes = (self._write(replica, f"probe-{self._round}-{replica.name}") for replica in self.cluster.replicas)
        await asyncio.wait_for(asyncio.gather(*writes), _PATIENCE)

    async def _write(self, replica: Replica, name: str) -> int:
        """Return the revision of a write that the replica has taken, however often it has to be asked."""
        while True:
            try:
                async with asyncio.timeout(2.0), config_maps(replica) as objects:
                    return written(await objects.create({"metadata": {"generateName": f"{name}-"}})).revision
            except UNANSWERED:
                await asyncio.sleep(0.05)

    async def _reached_by(self, watchers: list[Watcher]) -> None:
        last = await self._write(self.cluster.replicas[0], f"last-{self._round}")
        await asyncio.gather(*(watcher.until(last) for watcher in watchers))

    def _account(self, fault: Fault, load: Load, watchers: list[Watcher], recovery: float) -> None:
        ledger, figures = load.ledger, self.figures.setdefault(fault.name, Figures())
        histories = [*ledger.registers.values(), *ledger.sets.values()]
        figures.rounds += 1
        figures.acknowledged += len(ledger.acknowledged) + len(ledger.removed)
        figures.unanswered += sum(not entry.is_known for history in histories for entry in history)
        figures.reads += ledger.reads
        figures.stale += ledger.stale
        figures.listed_again += sum(bool(since) for watcher in watchers for since, _ in watcher.listed)
        figures.resumed += sum(watcher.resumed for watcher in watchers)
        figures.recoveries.append(recovery)
        check = partial(check_watcher, ledger=ledger, seen=self._seen, values=self._values)
        figures.lost += len(list(ledger.lost())) + max(map(check, watchers))
        found = [*ledger.violations, *(violation for watcher in watchers for violation in watcher.violations)]
        self.violations += [f"round {self._round}, {fault.name}: {violation}" for violation in found]
        print(f"round {self._round}: {fault.name}: back after {recovery:.1f} s", *found, sep="\n", flush=True)
        for watcher in watchers:
            watcher.resumed = 0
            watcher.violations.clear()


def as_table(figures: dict[str, Figures]) -> str:
    """In Markdown."""
    head = [
        "| fault | times | writes acknowledged | lost | reads | stale | writes without an answer "
        "| watches resumed (listed again) | recovery, median | longest |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(_row(name, figures[name]) for name in figures)])


def _row(name: str, of: Figures) -> str:
    typical, longest = median(of.recoveries), max(of.recoveries)
    return (
        f"| {name} | {of.rounds} | {of.acknowledged:,} | {of.lost} | {of.reads:,} | {of.stale} | {of.unanswered:,} "
        f"| {of.resumed:,} ({of.listed_again}) | {typical:.1f} s | {longest:.1f} s |"
    )
