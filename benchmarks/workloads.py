"""Workloads on simulated nodes: how fast they come, are replaced and go, and what that costs.

    python benchmarks/workloads.py                     a server of our own, with simulated nodes
    python benchmarks/workloads.py --kubeconfig FILE   another cluster: its nodes are made here, nobody runs pods, and
                                                       what counts is pods that were created and bound
    --replicas 1000 --nodes 50 --jobs 100 --pods-a-job 20 --idle-nodes 1000 --large 5000:500

Wall time and processor time of the server's process; the longest wait is that of another client, which asks /livez all
the time from a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))
sys.path.insert(0, str(Path(__file__).parent))

from livez_client import livez_client
from servers.local import local_pilothouse
from servers.target import Target

from pilothouse.client import Client, DeleteOptions, Json, ListOptions, connect, load_kubeconfig
from pilothouse.errors import NotFound

NAMESPACE = "workloads"
CONTAINER = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Pods:
    """The pods of the namespace as a watch shows them."""

    client: Client
    ready: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)
    of_image: dict[str, set[str]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        pods = self.client.resource("v1", "pods", namespace=NAMESPACE)
        listing = await pods.list()
        options = ListOptions(resource_version=listing["metadata"]["resourceVersion"])
        async with await pods.watch(options) as watch:
            async for event in watch:
                self._see(event.type, event.object)
                self.changed.set()

    def _see(self, type_: str, pod: Json) -> None:
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        gone = type_ == "DELETED"
        is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
        _keep(self.there, name, not gone)
        _keep(self.bound, name, not gone and bool(pod["spec"].get("nodeName")))
        _keep(self.ready, name, not gone and is_ready)
        image = pod["spec"]["containers"][0]["image"]
        _keep(self.of_image.setdefault(image, set()), name, not gone and is_ready)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.changed.clear()
            await self.changed.wait()


def _keep(names: set[str], name: str, keep: bool) -> None:
    (names.add if keep else names.discard)(name)


@dataclass
class Cluster:
    client: Client
    pid: int | None
    pods: Pods

    @property
    def processor_seconds(self) -> float:
        if self.pid is None:
            return float("nan")
        parts = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / _TICKS

    @property
    def megabytes(self) -> float:
        if self.pid is None:
            return float("nan")
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2

    async def measure(self, name: str, work: Awaitable[int]) -> None:
        """Prints what the work took; the work returns how many pods it was about."""
        began, spent = time.perf_counter(), self.processor_seconds
        pods = await work
        wall, processor = time.perf_counter() - began, self.processor_seconds - spent
        rate = f"{pods / wall:8.0f} pods/s" if pods else " " * 15
        print(f"{name:44} {wall:7.2f} s {rate} {processor:7.2f} s of processor {self.megabytes:6.0f} MB", flush=True)


def deployment(replicas: int, image: str) -> Json:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{**CONTAINER, "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def job(name: str, pods: int) -> Json:
    spec = {"restartPolicy": "Never", "containers": [CONTAINER]}
    return {"metadata": {"name": name}, "spec": {"completions": pods, "parallelism": pods, "template": {"spec": spec}}}


async def roll_out(cluster: Cluster, replicas: int, *, bound_only: bool) -> int:
    await cluster.client.resource("apps/v1", "deployments", namespace=NAMESPACE).create(deployment(replicas, "web:1"))
    pods = cluster.pods
    await pods.until(lambda: len(pods.bound if bound_only else pods.ready) >= replicas)
    return replicas


async def update(cluster: Cluster, replicas: int) -> int:
    deployments = cluster.client.resource("apps/v1", "deployments", namespace=NAMESPACE)
    await deployments.patch("web", {"spec": {"template": {"spec": {"containers": [{**CONTAINER, "image": "web:2"}]}}}})
    pods = cluster.pods
    await pods.until(lambda: len(pods.of_image.get("web:2", ())) >= replicas and len(pods.there) == replicas)
    return replicas


async def run_jobs(cluster: Cluster, jobs: int, pods: int) -> int:
    resource = cluster.client.resource("batch/v1", "jobs", namespace=NAMESPACE)
    options = ListOptions(resource_version=(await resource.list())["metadata"]["resourceVersion"])
    async with await resource.watch(options) as watch:
        await asyncio.gather(*(resource.create(job(f"job-{number}", pods)) for number in range(jobs)))
        complete: set[str] = set()
        while len(complete) < jobs:
            seen = (await anext(watch)).object
            if (seen.get("status") or {}).get("succeeded") == pods:
                complete.add(seen["metadata"]["name"])
    return jobs * pods


async def delete_namespace(client: Client) -> int:
    namespaces = client.resource("v1", "namespaces")
    await namespaces.delete(NAMESPACE, DeleteOptions())
    while True:
        try:
            await namespaces.get(NAMESPACE)
        except NotFound:
            return 0
        await asyncio.sleep(0.05)


async def make_nodes(client: Client, number: int) -> None:
    """Ready nodes that nobody runs."""
    nodes, room = client.resource("v1", "nodes"), {"cpu": "32", "memory": "256Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    for each in range(number):
        made = await nodes.create({"metadata": {"name": f"bench-{each}"}, "status": status})
        made = await nodes.get(made["metadata"]["name"])
        made["spec"].pop("taints", None)
        await nodes.update(made)


async def workloads(cluster: Cluster, args: argparse.Namespace, *, bound_only: bool) -> None:
    await cluster.client.resource("v1", "namespaces").create({"metadata": {"name": NAMESPACE}})
    following = asyncio.create_task(cluster.pods.follow())
    till = "bound" if bound_only else "Ready"
    await cluster.measure(
        f"Deployment of {args.replicas} on {args.nodes} nodes, all {till}",
        roll_out(cluster, args.replicas, bound_only=bound_only),
    )
    if not bound_only:
        await cluster.measure("rolling update of it", update(cluster, args.replicas))
        await cluster.measure(f"{args.jobs} Jobs of {args.pods_a_job}", run_jobs(cluster, args.jobs, args.pods_a_job))
    following.cancel()
    await cluster.measure("deletion of the namespace", delete_namespace(cluster.client))


async def idle(cluster: Cluster, nodes: int) -> None:
    listed = cluster.client.resource("v1", "nodes")
    async with await listed.watch(ListOptions(resource_version="0")) as watch:
        seen: set[str] = set()
        while len(seen) < nodes:
            seen.add((await anext(watch)).object["metadata"]["name"])
    await asyncio.sleep(20)
    spent = cluster.processor_seconds
    await asyncio.sleep(30)
    share = (cluster.processor_seconds - spent) / 30
    print(f"{f'{nodes} nodes idle':44} {100 * share:7.1f} % of a processor {cluster.megabytes:31.0f} MB", flush=True)


async def large(cluster: Cluster, pods: int, nodes: int) -> None:
    await cluster.client.resource("v1", "namespaces").create({"metadata": {"name": NAMESPACE}})
    following = asyncio.create_task(cluster.pods.follow())
    await cluster.measure(f"Deployment of {pods} on {nodes} nodes", roll_out(cluster, pods, bound_only=False))
    following.cancel()


@contextmanager
def others(target: Target) -> Iterator[None]:
    """Another client all the while; says at the end how long it had to wait at most."""
    host, port = target.address
    assert target.ca_file is not None
    with livez_client(host, port, ca_file=target.ca_file, token=target.token, pid=target.pid) as client:
        yield
        print(f"{'longest wait of another client':44} {1000 * client.longest_wait():7.0f} ms", flush=True)


async def on_a_server_of_ours(nodes: int, work: Callable[[Cluster], Awaitable[None]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        local_pilothouse(Path(folder), f"--simulated-nodes={nodes}") as (target, _),
        others(target),
    ):
        config = replace(load_kubeconfig(Path(folder, "data/admin.kubeconfig")), qps=0)
        async with connect(config) as client:
            await work(Cluster(client, target.pid, Pods(client)))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods-a-job", type=int, default=20)
    parser.add_argument("--idle-nodes", type=int, default=1000)
    parser.add_argument("--large", default="5000:500", help="pods and nodes; 0:0 for none")
    args = parser.parse_args()
    if args.kubeconfig:
        async with connect(replace(load_kubeconfig(args.kubeconfig), qps=0)) as client:
            await make_nodes(client, args.nodes)
            await workloads(Cluster(client, None, Pods(client)), args, bound_only=True)
        return
    await on_a_server_of_ours(args.nodes, lambda cluster: workloads(cluster, args, bound_only=False))
    if args.idle_nodes:
        await on_a_server_of_ours(args.idle_nodes, lambda cluster: idle(cluster, args.idle_nodes))
    pods, nodes = map(int, args.large.split(":"))
    if pods:
        await on_a_server_of_ours(nodes, lambda cluster: large(cluster, pods, nodes))


if __name__ == "__main__":
    asyncio.run(main())
