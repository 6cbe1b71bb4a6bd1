"""How long a server takes to collect a tree of owners in each way of deletion, and to empty a namespace; and what the
controllers add to its memory at rest.

    python benchmarks/controllers.py [objects in a tree]

Each server is a process of its own, reached over TLS. Times are from the deletion to the last change seen in a watch.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.options import DeleteOptions, ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, uid_of

AT_ONCE = 32
IN_A_NAMESPACE = 1000
_REST = 3.0

CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
BACKEND = {"name": "a", "port": {"number": 1}}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
KINDS: list[tuple[str, str, Json]] = [
    ("v1", "configmaps", {}),
    ("v1", "secrets", {}),
    ("v1", "serviceaccounts", {}),
    ("v1", "services", {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "endpoints", {}),
    ("v1", "limitranges", {"spec": {"limits": []}}),
    ("v1", "podtemplates", {"template": TEMPLATE}),
    ("v1", "replicationcontrollers", {"spec": {"template": TEMPLATE}}),
    ("apps/v1", "controllerrevisions", {"revision": 1, "data": {"a": 1}}),
    ("rbac.authorization.k8s.io/v1", "roles", {"rules": []}),
    ("rbac.authorization.k8s.io/v1", "rolebindings", {"roleRef": ROLE}),
    ("coordination.k8s.io/v1", "leases", {"spec": {}}),
    ("networking.k8s.io/v1", "networkpolicies", {"spec": {"podSelector": {}}}),
    ("networking.k8s.io/v1", "ingresses", {"spec": {"defaultBackend": {"service": BACKEND}}}),
    ("policy/v1", "poddisruptionbudgets", {"spec": {}}),
    ("autoscaling/v2", "horizontalpodautoscalers", {"spec": {"maxReplicas": 2, "scaleTargetRef": TARGET}}),
    ("apps/v1", "deployments", {"spec": SELECTED}),
    ("apps/v1", "replicasets", {"spec": SELECTED}),
    ("apps/v1", "statefulsets", {"spec": {"serviceName": "s", **SELECTED}}),
    ("discovery.k8s.io/v1", "endpointslices", {"addressType": "IPv4", "endpoints": []}),
]  # fmt: skip


@dataclass(frozen=True)
class Server:
    client: Client
    pid: int

    @property
    def megabytes(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096 / 1024**2


@asynccontextmanager
async def server(*flags: str) -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pilothouse.cli.main", "serve", "--secure-port=0", f"--data-dir={folder}"]
        with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: ASYNC220
            assert process.stdout is not None
            while not process.stdout.readline().startswith(b"export KUBECONFIG="):
                pass
            try:
                config = replace(load_kubeconfig(Path(folder, "admin.kubeconfig")), qps=0)
                async with connect(config) as client:
                    yield Server(client, process.pid)
            finally:
                process.terminate()


async def together(work: Iterable[Awaitable[Json]]) -> list[Json]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(each: Awaitable[Json]) -> Json:
        async with turn:
            return await each

    return await asyncio.gather(*map(one, work))


def owned(name: str, *owners: Json) -> Json:
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
    references = [{**kind, "name": name_of(each), "uid": uid_of(each)} for each in owners]
    return {"metadata": {"name": name, "ownerReferences": references}}


async def plant(objects: ResourceClient, number: int) -> None:
    """A root, its children, and theirs: three levels, as wide as they are deep."""
    root = await objects.create(owned("root"))
    children = await together(objects.create(owned(f"child-{n}", root)) for n in range(int(number**0.5)))
    left = number - 1 - len(children)
    await together(objects.create(owned(f"leaf-{n}", children[n % len(children)])) for n in range(left))


async def collected(objects: ResourceClient, policy: str, number: int) -> float:
    """Seconds until the root and, unless they are orphaned, all below it are gone."""
    await plant(objects, number)
    since = (await objects.list(ListOptions(limit=1)))["metadata"]["resourceVersion"]
    watch = await objects.metadata_only().watch(ListOptions(resource_version=since))
    began, left = perf_counter(), 1 if policy == "Orphan" else number
    await objects.delete("root", DeleteOptions(propagation_policy=policy))
    async with watch:
        while left:
            left -= (await anext(watch)).type == "DELETED"
    return perf_counter() - began


async def emptied(client: Client) -> float:
    namespaces = client.resource("v1", "namespaces")
    await namespaces.create({"metadata": {"name": "full"}})
    wanted = [(KINDS[number % len(KINDS)], f"n{number}") for number in range(IN_A_NAMESPACE)]
    await together(
        client.resource(api_version, plural, namespace="full").create({"metadata": {"name": name}, **fields})
        for (api_version, plural, fields), name in wanted
    )
    began = perf_counter()
    await namespaces.delete("full")
    while True:
        try:
            await namespaces.get("full")
        except NotFound:
            return perf_counter() - began
        await asyncio.sleep(0.02)


async def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    async with server("--controllers=-*") as without:
        await asyncio.sleep(_REST)
        print(f"{'at rest without controllers':<55} {without.megabytes:.0f} MB")
    async with server() as own:
        await asyncio.sleep(_REST)
        print(f"{'at rest with all controllers':<55} {own.megabytes:.0f} MB")
        what = f"a namespace with {IN_A_NAMESPACE} objects of {len(KINDS)} kinds"
        print(f"{what:<55} {await emptied(own.client):.2f} s")
        objects = own.client.resource("v1", "configmaps", namespace="default")
        for policy in ("Background", "Foreground", "Orphan"):
            what = f"a tree of three levels and {number} objects, {policy}"
            print(f"{what:<55} {await collected(objects, policy, number):.2f} s")
        print(f"{'after that':<55} {own.megabytes:.0f} MB")


if __name__ == "__main__":
    asyncio.run(main())
