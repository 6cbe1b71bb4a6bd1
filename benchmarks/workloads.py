"""Workloads on simulated nodes: how fast they come, are replaced and go, and what that costs.

    python benchmarks/workloads.py                     a server of our own, with simulated nodes
    python benchmarks/workloads.py --kubeconfig FILE --pid N [--pid N] --rounds 2
                                                       another cluster and a server of our own, in turns: the nodes are
                                                       made here, nobody runs pods, and what counts is pods that were
                                                       created and bound; of the processes of the other cluster
    --replicas 1000 --nodes 50 --jobs 100 --pods-a-job 20 --idle-nodes 1000 --large 5000:500 --workers 2

Wall time and processor time of the server's processes; the longest wait is that of another client, which asks /livez
all the time from a process of its own. After the large Deployment the server starts again on its data. kwok, the
simulator of nodes for real clusters, publishes 20 nodes or pods per second.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))
sys.path.insert(0, str(Path(__file__).parent))

from livez_client import livez_client
from servers.local import local_pilothouse
from servers.processes import memory, processor_seconds
from servers.target import Target

from pilothouse.client import Client, DeleteOptions, Json, ListOptions, ResourceClient, connect, load_kubeconfig
from pilothouse.errors import Conflict, NotFound

NAMESPACE = "workloads"
CONTAINER = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}


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
    pids: Sequence[int]
    """Of its processes, each with its children."""
    pods: Pods

    @property
    def processor_seconds(self) -> float:
        return sum(map(processor_seconds, self.pids)) if self.pids else float("nan")

    @property
    def megabytes(self) -> float:
        return sum(map(memory, self.pids)) if self.pids else float("nan")

    async def measure(self, name: str, work: Awaitable[int]) -> Spent:
        """Prints and returns what the work took; the work returns how many pods it was about."""
        began, spent = time.perf_counter(), self.processor_seconds
        pods = await work
        wall, processor = time.perf_counter() - began, self.processor_seconds - spent
        rate = f"{pods / wall:8.0f} pods/s" if pods else " " * 15
        print(f"{name:44} {wall:7.2f} s {rate} {processor:7.2f} s of processor {self.megabytes:6.0f} MB", flush=True)
        return Spent(wall, processor)


@dataclass(frozen=True)
class Spent:
    wall: float
    processor: float


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


async def delete_namespace(client: Client, pods: int) -> int:
    namespaces = client.resource("v1", "namespaces")
    await namespaces.delete(NAMESPACE, DeleteOptions())
    while True:
        try:
            await namespaces.get(NAMESPACE)
        except NotFound:
            return pods
        await asyncio.sleep(0.05)


async def make_nodes(client: Client, number: int) -> None:
    """Ready nodes that nobody runs."""
    nodes, room = client.resource("v1", "nodes"), {"cpu": "32", "memory": "256Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    for each in range(number):
        await nodes.create({"metadata": {"name": f"bench-{each}"}, "status": status})
    for each in range(number):
        await _make_schedulable(nodes, f"bench-{each}")


async def _make_schedulable(nodes: ResourceClient, name: str) -> None:
    """Remove the taints of a new node. The controllers of the cluster change the node at the same time."""
    while True:
        node = await nodes.get(name)
        if not node["spec"].pop("taints", None):
            return
        with suppress(Conflict):
            await nodes.update(node)


async def workloads(cluster: Cluster, args: argparse.Namespace, *, bound_only: bool) -> Spent:
    """Return what the Deployment took."""
    await cluster.client.resource("v1", "namespaces").create({"metadata": {"name": NAMESPACE}})
    following = asyncio.create_task(cluster.pods.follow())
    till, pods = "bound" if bound_only else "Ready", args.replicas
    spent = await cluster.measure(
        f"Deployment of {args.replicas} on {args.nodes} nodes, all {till}",
        roll_out(cluster, args.replicas, bound_only=bound_only),
    )
    if not bound_only:
        await cluster.measure("rolling update of it", update(cluster, args.replicas))
        if args.jobs:
            jobs = run_jobs(cluster, args.jobs, args.pods_a_job)
            await cluster.measure(f"{args.jobs} Jobs of {args.pods_a_job}", jobs)
            pods += args.jobs * args.pods_a_job
        await cluster.measure("deletion of the namespace", delete_namespace(cluster.client, pods))
    following.cancel()
    return spent


async def compare(args: argparse.Namespace) -> None:
    """Another cluster and a server of ours, in turns, and the ratios of wall and processor time."""
    theirs, ours = [], []
    for number in range(args.rounds):
        async with connect(replace(load_kubeconfig(args.kubeconfig), qps=0)) as client:
            if not number:
                await make_nodes(client, args.nodes)
            theirs.append(await workloads(Cluster(client, args.pid, Pods(client)), args, bound_only=True))
            await delete_without_nodes(client)

        async def on_ours(cluster: Cluster) -> None:
            await make_nodes(cluster.client, args.nodes)
            ours.append(await workloads(cluster, args, bound_only=True))

        await on_a_server_of_ours(on_ours, f"--workers={args.workers}")
    walls = [their.wall / our.wall for their, our in zip(theirs, ours, strict=True)]
    processors = [their.processor / our.processor for their, our in zip(theirs, ours, strict=True)]
    for name, ratios in (("ratio of wall time", walls), ("ratio of processor time", processors)):
        print(f"{name:44} {', '.join(f'{ratio:.2f}' for ratio in ratios)}", flush=True)


async def delete_without_nodes(client: Client) -> None:
    """Delete the namespace of pods that no node confirms."""
    pods = client.resource("v1", "pods", namespace=NAMESPACE)
    await client.resource("apps/v1", "deployments", namespace=NAMESPACE).delete("web")
    deleting = asyncio.create_task(delete_namespace(client, 0))
    while not deleting.done():
        await pods.delete_collection(DeleteOptions(grace_period_seconds=0))
        await asyncio.sleep(0.5)
    await deleting


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


async def on_a_server_of_ours(
    work: Callable[[Cluster], Awaitable[object]], *flags: str, starts_again: bool = False
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with local_pilothouse(Path(folder), *flags) as (target, _), others(target):
            assert target.pid is not None
            config = replace(load_kubeconfig(Path(folder, "data/admin.kubeconfig")), qps=0)
            async with connect(config) as client:
                await work(Cluster(client, [target.pid], Pods(client)))
        if starts_again:
            with local_pilothouse(Path(folder), *flags) as (target, seconds):
                assert target.pid is not None
                spent = processor_seconds(target.pid)
                print(f"{'start with all of it':44} {seconds:7.2f} s {'':15} {spent:7.2f} s of processor", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--pid", action="append", type=int, default=[], help="a process of the other cluster")
    parser.add_argument("--rounds", type=int, default=2, help="of both clusters, with --kubeconfig")
    parser.add_argument("--workers", type=int, default=1, help="of the server of ours")
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods-a-job", type=int, default=20)
    parser.add_argument("--idle-nodes", type=int, default=1000)
    parser.add_argument("--large", default="5000:500", help="pods and nodes; 0:0 for none")
    args = parser.parse_args()
    if args.kubeconfig:
        await compare(args)
        return
    workers = f"--workers={args.workers}"
    if args.replicas:
        await on_a_server_of_ours(
            lambda cluster: workloads(cluster, args, bound_only=False), f"--simulated-nodes={args.nodes}", workers
        )
    if args.idle_nodes:
        await on_a_server_of_ours(
            lambda cluster: idle(cluster, args.idle_nodes), f"--simulated-nodes={args.idle_nodes}", workers
        )
    pods, nodes = map(int, args.large.split(":"))
    if pods:
        await on_a_server_of_ours(
            lambda cluster: large(cluster, pods, nodes), f"--simulated-nodes={nodes}", workers, starts_again=True
        )


if __name__ == "__main__":
    asyncio.run(main())
