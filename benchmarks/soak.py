"""A server under mixed load for a long time, and what its process holds meanwhile: what goes on growing is a leak.

    python benchmarks/soak.py --minutes 120 --svg soak.svg     a server of our own, with simulated nodes
    python benchmarks/soak.py --only definitions               one kind of load, to find out which one leaks

Clients create, change, list and delete ConfigMaps; open watches and leave them; install definitions, use and remove
them; make namespaces and delete them; and replace the pods of a Deployment again and again. Events live for a minute
and history for half of one, so that both are in balance soon.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from servers.local import local_pilothouse
from servers.soak_samples import Sampler, growth, plot
from workloads import deployment

from pilothouse.client import Client, ClientConfig, Json, ListOptions, connect, load_kubeconfig
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.wait import poll
from pilothouse.errors import NotFound, StatusError

FLAGS = ("--simulated-nodes=5", "--simulation-delay=1ms", "--event-ttl=1m", "--etcd-compaction-interval=30s")
WRITERS, WATCHERS, REPLICAS = 6, 10, 20
_WAIT = 60.0


class Load:
    """Each method is one round of one kind of client; `done` counts rounds by kind, `failed` the others."""

    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._chance = random.Random(seed)
        self._numbers = count()
        self.done: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    async def repeat(self, round_: Callable[[], Awaitable[None]], until: float) -> None:
        name = getattr(round_, "__name__", "")
        while time.monotonic() < until:
            try:
                await round_()
                self.done[name] = self.done.get(name, 0) + 1
            except (ConnectionFailed, StatusError, TimeoutError) as error:
                self.failed[f"{name}: {error}"] = self.failed.get(f"{name}: {error}", 0) + 1
                await asyncio.sleep(0.5)

    async def objects(self) -> None:
        config_maps = self._client.resource("v1", "configmaps", namespace="default")
        name = f"soak-{next(self._numbers)}"
        found = await config_maps.create({"metadata": {"name": name, "labels": {"soak": "yes"}}, "data": {"n": "0"}})
        for number in range(1, 4):
            found = await config_maps.update(found | {"data": {"n": str(number) * self._chance.randint(1, 3000)}})
        await config_maps.list(ListOptions(label_selector="soak=yes"))
        await config_maps.get(name)
        await config_maps.delete(name)

    async def watches(self) -> None:
        kind = self._chance.choice(("configmaps", "pods", "events", "namespaces"))
        since = (await self._client.resource("v1", kind).list(ListOptions(limit=1)))["metadata"]["resourceVersion"]
        seconds = self._chance.uniform(0.1, 4)
        try:
            async with asyncio.timeout(seconds):
                options = ListOptions(resource_version=since, timeout_seconds=30, allow_watch_bookmarks=True)
                async with await self._client.resource("v1", kind).watch(options) as watch:
                    async for _ in watch:
                        pass
        except TimeoutError:
            pass

    async def definitions(self) -> None:
        plural, group = f"soaks{next(self._numbers)}", "soak.example.com"
        definitions = self._client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        await definitions.create(_definition(plural, group))
        things = self._client.resource(f"{group}/v1", plural, namespace="default")
        await poll(lambda: _is_served(things.list()), interval=0.1, timeout=_WAIT)
        for number in range(3):
            thing: Json = {"apiVersion": f"{group}/v1", "kind": plural.capitalize(), "spec": {"size": number}}
            await things.create({**thing, "metadata": {"name": f"t{number}"}})
        await definitions.delete(f"{plural}.{group}")
        await poll(lambda: _is_gone(definitions.get(f"{plural}.{group}")), interval=0.1, timeout=_WAIT)

    async def namespaces(self) -> None:
        name, namespaces = f"soak-{next(self._numbers)}", self._client.resource("v1", "namespaces")
        await namespaces.create({"metadata": {"name": name}})
        for kind in ("configmaps", "secrets"):
            for number in range(5):
                await self._client.resource("v1", kind, namespace=name).create({"metadata": {"name": f"o{number}"}})
        await namespaces.delete(name)
        await poll(lambda: _is_gone(namespaces.get(name)), interval=0.1, timeout=_WAIT)

    async def rollouts(self) -> None:
        deployments = self._client.resource("apps/v1", "deployments", namespace="default")
        template = deployment(REPLICAS, f"web:{next(self._numbers)}")
        try:
            changed = await deployments.patch("web", {"spec": template["spec"]})
        except NotFound:
            changed = await deployments.create(template)
        generation = changed["metadata"]["generation"]

        async def is_rolled_out() -> bool:
            status = (await deployments.get("web")).get("status") or {}
            numbers = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas", "replicas")]
            return status.get("observedGeneration", 0) >= generation and numbers == [REPLICAS] * 3

        await poll(is_rolled_out, interval=0.5, timeout=_WAIT)


def _definition(plural: str, group: str) -> Json:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural, "kind": plural.capitalize()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


async def _is_gone(reading: Awaitable[Json]) -> bool:
    try:
        await reading
    except NotFound:
        return True
    return False


async def _is_served(reading: Awaitable[Json]) -> bool:
    return not await _is_gone(reading)


async def _tasks(client: Client) -> int:
    """The server's tasks and threads, as its profile counts them."""
    found = re.search(r"total (\d+)", await client.request_text("/debug/pprof/goroutine", {"debug": "1"}))
    return int(found[1]) if found else 0


async def soak(config: ClientConfig, pid: int, options: argparse.Namespace) -> Sampler:
    sampler, end = Sampler(pid), time.monotonic() + options.minutes * 60
    async with connect(replace(config, qps=0)) as client:
        load = Load(client, options.seed)
        rounds = (
            [load.objects] * WRITERS + [load.watches] * WATCHERS + [load.definitions, load.namespaces, load.rollouts]
        )
        chosen = [round_ for round_ in rounds if options.only in ("", round_.__name__)]
        running = [asyncio.create_task(load.repeat(round_, end)) for round_ in chosen]
        print("| minute | memory (MB) | file descriptors | threads | tasks | rounds |\n|---|---|---|---|---|---|")
        while not all(task.done() for task in running):
            found = sampler.take(tasks=await _tasks(client), operations=sum(load.done.values()))
            columns = (found.megabytes, found.descriptors, found.threads, found.tasks, found.operations)
            print(f"| {found.at / 60:.1f} | {' | '.join(f'{each:,.0f}' for each in columns)} |", flush=True)
            await asyncio.wait(running, timeout=options.sample_every)
        await asyncio.gather(*running)
    print("\nrounds: " + ", ".join(f"{name} {number:,}" for name, number in sorted(load.done.items())))
    if load.failed:
        print("failed: " + ", ".join(f"{name} {number:,}" for name, number in sorted(load.failed.items())))
    return sampler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--sample-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--svg", type=Path, help="where to write the plot")
    parser.add_argument("--only", default="", choices=("objects", "watches", "definitions", "namespaces", "rollouts"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_pilothouse(Path(folder), *FLAGS) as (target, _):
        assert target.pid is not None
        config = load_kubeconfig(Path(folder, "data/admin.kubeconfig"))
        sampler = asyncio.run(soak(config, target.pid, options))
    print("\n" + growth(sampler.samples))
    if options.svg is not None:
        options.svg.write_text(plot(sampler.samples))


if __name__ == "__main__":
    main()
