"""An operator under random faults: managers that take turns as leader, and a driver that creates, changes and deletes.

The seed decides the order of actions and faults. After the last fault is gone, the objects must reach the state that
the driver's actions ask for.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from patience import PATIENCE

from pilothouse.client import Client, ElectionTimes, Json, ListOptions, ResourceClient, name_of
from pilothouse.client.workqueue.rate_limiting import ItemExponentialFailureRateLimiter
from pilothouse.errors import NotFound, StatusError
from pilothouse.operator import Condition, Manager, Object, Reconciler, kind
from pilothouse.testing import API

USER = "operator"
API_VERSION = "demo.example.com/v1"
FINALIZER = "demo.example.com/backup"
RECORDS = "records"
LEASE = "default/soak"
NAMES = [f"backup-{number}" for number in range(8)]
_WRITES = ["create", "update", "patch", "delete"]

FAULTS: dict[str, dict[str, Any]] = {
    "watch cut": {"verbs": ["watch"], "watch": {"cutAfterEvents": 1}},
    "watch expired": {"verbs": ["watch"], "watch": {"expireAfterEvents": 2}},
    "watch refused with 410": {"verbs": ["watch"], "answer": 410},
    "event twice": {"verbs": ["watch"], "watch": {"duplicateEvery": 2}},
    "too many requests": {"verbs": [*_WRITES, "list"], "answer": 429},
    "internal error": {"verbs": ["*"], "answer": 500},
    "unavailable": {"verbs": _WRITES, "answer": 503},
    "conflict": {"verbs": _WRITES, "answer": 409},
    "response lost": {"verbs": _WRITES, "cut": "After"},
    "request lost": {"verbs": ["*"], "cut": "Before"},
    "slow writes": {"verbs": _WRITES, "delay": {"duration": "20ms", "jitter": "50ms"}},
    "connections closed": {"close_connections": True},
}


@kind(group="demo.example.com", version="v1", status=True)
class Backup(Object):
    keep: int = 7


class BackupReconciler(Reconciler[Backup]):
    """Keeps a ConfigMap for each Backup, and a record of each deletion. Notes reconciles that overlap."""

    owns = ("v1 ConfigMap",)
    finalizer = FINALIZER
    concurrency = 4

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.overlaps: list[str] = []

    def rate_limiter(self) -> ItemExponentialFailureRateLimiter:
        return ItemExponentialFailureRateLimiter(0.005, 0.1)

    @asynccontextmanager
    async def noted(self, backup: Backup) -> AsyncIterator[None]:
        name = backup.metadata.name
        self.running[name] += 1
        if self.running[name] > 1:
            self.overlaps.append(name)
        try:
            yield
        finally:
            self.running[name] -= 1

    async def reconcile(self, backup: Backup) -> None:
        async with self.noted(backup):
            await self.apply(backup, config_map(backup.metadata.name, {"keep": str(backup.keep)}))
            backup.status.conditions.set(Condition("Ready", True, "Applied"))
            backup.status["keep"] = backup.keep

    async def finalize(self, backup: Backup) -> None:
        async with self.noted(backup):
            record = config_map(f"{backup.metadata.name}-{backup.metadata.uid}", {})
            record["metadata"]["namespace"] = RECORDS
            await self.apply(None, record)


def config_map(name: str, data: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Soak:
    """`run` acts; `check` waits for the right state. `story` lists the actions for a report."""

    def __init__(self, api: API, seed: int) -> None:
        self._api, self._random = api, random.Random(seed)
        self._operator = api.as_user(USER, groups=["system:masters"])
        client = api.client(in_process=True)
        self._client = client
        self._backups = client.resource(API_VERSION, "backups", namespace="default")
        self._managers: list[Manager] = []
        self.wanted: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.story: list[str] = []

    async def run(self, steps: int) -> None:
        await self._client.resource("v1", "namespaces").create({"metadata": {"name": RECORDS}})
        await self._start_manager()
        await self._managers[0].wait_ready()
        await self._start_manager()
        for _ in range(steps):
            action = self._random.choices(
                [self._write, self._delete, self._add_fault, self._remove_child, self._change_leader],
                weights=[40, 15, 25, 10, 10],
            )[0]
            await action()
            await asyncio.sleep(self._random.choice([0, 0, 0.01, 0.05]))

    async def check(self) -> None:
        """Remove the faults and wait for the right state. Raises AssertionError with the differences and the story."""
        await self._api.request("DELETE", "/apis/testing.pilothouse.dev/v1alpha1/faults")
        differences = ["unknown"]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while differences := await self._differences():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        assert not differences, "\n".join([*differences, "after:", *self.story])
        overlaps = [name for manager in self._managers for one in manager.reconcilers for name in one.overlaps]  # type: ignore[attr-defined]
        assert overlaps == [], self.story

    async def stop(self) -> None:
        for manager in self._managers:
            await manager.stop()

    async def _start_manager(self) -> None:
        times = ElectionTimes(lease_duration=3, renew_deadline=2, retry_period=0.2)
        manager = Manager(
            [BackupReconciler()],
            name="soak",
            config=self._operator.config(),
            leader_election=LEASE,
            election_times=times,
            install_crds=not self._managers,
        )
        self._managers.append(manager)
        await manager.start()

    async def _write(self) -> None:
        name, keep = self._random.choice(NAMES), self._random.randint(1, 100)
        self.story.append(f"{name} keep={keep}")
        body = {"apiVersion": API_VERSION, "kind": "Backup", "metadata": {"name": name}, "spec": {"keep": keep}}
        if name in self.wanted:
            await self._backups.patch(name, body)
        else:
            await self._gone(name)
            await self._backups.create(body)
        self.wanted[name] = keep

    async def _delete(self) -> None:
        name = self._random.choice(NAMES)
        if name in self.wanted:
            self.story.append(f"delete {name}")
            # Without the finalizer, the operator has not seen the object, and owes no record.
            state = await self._backups.get(name)
            await self._backups.delete(name)
            del self.wanted[name]
            if state["metadata"].get("finalizers"):
                self.deleted.add(f"{name}-{state['metadata']['uid']}")

    async def _gone(self, name: str) -> None:
        """Wait until the operator has finalized a deleted object; its name is free then."""
        await self._api.request("DELETE", "/apis/testing.pilothouse.dev/v1alpha1/faults")
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self._backups.get(name)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    async def _add_fault(self) -> None:
        name = self._random.choice([*FAULTS])
        self.story.append(name)
        times = None if "close_connections" in FAULTS[name] else self._random.randint(1, 5)
        await self._api.faults.add(users=[USER], times=times, **FAULTS[name])

    async def _remove_child(self) -> None:
        name = self._random.choice(NAMES)
        self.story.append(f"delete the child of {name}")
        with suppress(NotFound):
            await self._client.resource("v1", "configmaps", namespace="default").delete(name)

    async def _change_leader(self) -> None:
        """Stop a manager and start another; the lease passes on."""
        self.story.append("replace a manager")
        manager = self._managers.pop(self._random.randrange(len(self._managers)))
        with suppress(StatusError):
            await manager.stop()
        await self._start_manager()

    async def _differences(self) -> list[str]:
        backups = {name_of(obj): obj for obj in await _listed(self._backups)}
        children = {name_of(obj): obj for obj in await _listed(_config_maps(self._client, "default"))}
        records = {name_of(obj) for obj in await _listed(_config_maps(self._client, RECORDS))}
        found = [f"{name} still exists" for name in backups.keys() - self.wanted.keys()]
        found += [f"{name} has no record" for name in self.deleted - records]
        found += [f"the child of {name} still exists" for name in children.keys() & {*NAMES} - self.wanted.keys()]
        for name, keep in self.wanted.items():
            obj, child = backups.get(name, {}), children.get(name, {})
            if child.get("data") != {"keep": str(keep)}:
                found.append(f"{name} wants keep={keep}, and its child is {child.get('data')}")
            status = obj.get("status") or {}
            ready: Json = next(iter(status.get("conditions") or ()), {})
            if status.get("keep") != keep or ready.get("observedGeneration") != obj["metadata"]["generation"]:
                found.append(f"{name} wants keep={keep}, and its status is {status}")
            if obj["metadata"].get("finalizers") != [FINALIZER]:
                found.append(f"{name} has the finalizers {obj['metadata'].get('finalizers')}")
        return found


def _config_maps(client: Client, namespace: str) -> ResourceClient:
    return client.resource("v1", "configmaps", namespace=namespace)


async def _listed(resource: ResourceClient) -> list[Json]:
    items: list[Json] = (await resource.list(ListOptions()))["items"]
    return items
