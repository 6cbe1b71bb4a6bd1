"""Managers as processes see them: election, endpoints, several clusters, a relist, and the imports of an operator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from operator_parts import until
from patience import PATIENCE

from pilothouse.client import Client, ElectionTimes, Json, connect
from pilothouse.errors import Conflict, ConnectionRefused, NotLeading
from pilothouse.operator import Condition, Manager, Object, Reconciler, definitions, kind
from pilothouse.testing import API, server

BOATS = "boats.example.com/v1"
QUICK = ElectionTimes(lease_duration=3.0, renew_deadline=2.0, retry_period=0.1)


@kind(group="boats.example.com", version="v1", status=True)
class Boat(Object):
    port: str = ""


class Mirroring(Reconciler[Boat]):
    owns = ["v1 ConfigMap"]

    async def reconcile(self, boat: Boat) -> None:
        meta = {"name": boat.metadata.name}
        data = {"port": boat.port, "cluster": self.cluster.name}
        await self.apply(boat, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        boat.status.conditions.set(Condition("Ready", True, "Applied"))


def boat(name: str, port: str = "") -> Json:
    return {"apiVersion": BOATS, "kind": "Boat", "metadata": {"name": name}, "spec": {"port": port}}


async def soon(awaitable: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await awaitable


class Unreachable:
    """Transport to a server that refuses the first connections."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.refused = 0

    async def send(self, request: Any) -> Any:
        if self.refused < 4:
            self.refused += 1
            raise ConnectionRefused("connection refused")
        return await self._transport.send(request)

    async def close(self) -> None: ...


async def test_a_manager_waits_for_its_server(api: API) -> None:
    client = api.client(in_process=True)
    late = Unreachable(client.transport)
    async with Manager([Mirroring], config=Client(late), install_crds=True) as manager:
        await soon(manager.wait_ready())
        await client.resource(BOATS, "boats", namespace="default").create(boat("first"))
        await until(client, "v1", "configmaps", "first", lambda obj: True)
    assert late.refused == 4


async def test_a_missed_deletion_and_a_relist_lead_to_a_reconcile(api: API) -> None:
    """A restore ends all watches with 410; the relist shows the owned object gone without an event."""
    client = api.client(in_process=True)
    manager = Manager([Mirroring], config=api.client(in_process=True), install_crds=True)
    async with manager:
        await soon(manager.wait_ready())
        boats = client.resource(BOATS, "boats", namespace="default")
        made = await boats.create(boat("first"))
        await until(client, "v1", "configmaps", "first", lambda obj: True)
        await client.resource("v1", "configmaps", namespace="default").delete("first")
        before = await api.snapshot()
        config = await until(client, "v1", "configmaps", "first", lambda obj: True)
        await api.restore(before)

        def is_made_again(obj: Json) -> bool:
            return bool(obj["metadata"]["uid"] != config["metadata"]["uid"])

        again = await until(client, "v1", "configmaps", "first", is_made_again)
        assert again["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


async def test_a_manager_that_loses_its_lease_writes_nothing_more_and_leads_again(api: API) -> None:
    client = api.client(in_process=True)
    outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    started = asyncio.Event()

    class Stubborn(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            if outcome.done():
                boat.status.conditions.set(Condition("Ready", True, "LedAgain"))
                return
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                try:
                    await self.patch(boat, {"metadata": {"labels": {"late": "write"}}})
                    outcome.set_result(None)
                except NotLeading as error:
                    outcome.set_result(error)
                raise

    options: dict[str, Any] = {"leader_election": "default/boats", "election_times": QUICK, "install_crds": True}
    async with Manager([Stubborn], config=api.client(in_process=True), **options) as manager:
        await soon(manager.wait_ready())
        await client.resource(BOATS, "boats", namespace="default").create(boat("first"))
        await soon(started.wait())
        leases = client.resource("coordination.k8s.io/v1", "leases", namespace="default")
        async with asyncio.timeout(PATIENCE):
            while not outcome.done():
                lease = await leases.get("boats")
                lease["spec"] |= {"holderIdentity": "thief", "leaseDurationSeconds": 3}
                lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
                try:
                    await leases.update(lease)
                except Conflict:
                    continue
                await asyncio.wait({outcome}, timeout=0.5)
        assert isinstance(outcome.result(), NotLeading)
        stored = await until(client, BOATS, "boats", "first", lambda obj: obj.get("status"))
        assert "late" not in (stored["metadata"].get("labels") or {})
        assert stored["status"]["conditions"][0]["reason"] == "LedAgain"


async def test_one_of_two_managers_works_and_the_other_takes_over(api: API) -> None:
    client = api.client(in_process=True)

    class Naming(Reconciler[Boat]):
        def __init__(self, name: str) -> None:
            self.own_name = name

        async def reconcile(self, boat: Boat) -> None:
            boat.status["by"] = self.own_name

    options: dict[str, Any] = {"leader_election": True, "name": "boats", "install_crds": True}
    first, second = (Manager([Naming(name)], config=api.client(in_process=True), **options) for name in ("one", "two"))
    boats = client.resource(BOATS, "boats", namespace="default")
    async with second:
        await soon(second.wait_ready())
        await boats.create(boat("first"))
        await until(client, BOATS, "boats", "first", lambda obj: (obj.get("status") or {}).get("by") == "two")
        await soon(first.start())
        await soon(first.wait_ready())
        assert (first.is_leading, second.is_leading) == (False, True)
        with pytest.raises(NotLeading):
            await first.cluster().client.resource("v1", "namespaces").create({"metadata": {"name": "x"}})
        await second.stop()
        await until(client, BOATS, "boats", "first", lambda obj: obj["status"]["by"] == "one")
        await soon(first.stop())


async def test_endpoints_show_health_readiness_and_metrics(api: API) -> None:
    manager = Manager([Mirroring], config=api.client(in_process=True), bind="127.0.0.1:0")
    sick = False

    def check() -> None:
        if sick:
            raise RuntimeError("it rains")

    manager.healthz["weather"] = check
    async with manager:
        assert (await get(manager.port, "/healthz"))[0] == 200
        status, text = await get(manager.port, "/readyz")
        assert (status, "waiting for the caches of boat" in text) == (500, True)
        client = manager.cluster().client
        await client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions").create(definitions(Boat)[0])
        await soon(manager.wait_ready())
        assert await get(manager.port, "/readyz") == (200, "ok")
        sick = True
        status, text = await get(manager.port, "/healthz")
        assert (status, "[-]weather failed: it rains" in text) == (500, True)
        assert (await get(manager.port, "/healthz/ping"))[0] == 200
        assert (await get(manager.port, "/nothing"))[0] == 404
        _, metrics = await get(manager.port, "/metrics")
        assert 'controller_runtime_reconcile_total{controller="boat",result="success"} 0.0' in metrics
        assert 'controller_runtime_max_concurrent_reconciles{controller="boat"} 1.0' in metrics
        await client.resource(BOATS, "boats", namespace="default").create(boat("first"))
        await until(client, BOATS, "boats", "first", lambda obj: obj.get("status"))
        assert 'workqueue_adds_total{name="boat"}' in (await get(manager.port, "/metrics"))[1]


async def get(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await soon(reader.read())).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_a_reconciler_works_in_several_clusters(api: API) -> None:
    class HubOnly(Reconciler[Boat]):
        name = "hub-only"
        clusters = ["hub"]
        seen: ClassVar[set[str]] = set()

        async def reconcile(self, boat: Boat) -> None:
            self.seen.add(boat.metadata.name)

    async with server() as other, connect(other.config()) as there, connect(api.config()) as here:
        clusters = {"hub": here, "spoke": there}
        async with Manager([Mirroring, HubOnly], clusters=clusters, install_crds=True) as manager:
            await soon(manager.wait_ready())
            for name, client in clusters.items():
                await client.resource(BOATS, "boats", namespace="default").create(boat(f"in-{name}"))
            for name, client in clusters.items():
                config = await until(client, "v1", "configmaps", f"in-{name}", lambda obj: True)
                assert config["data"]["cluster"] == name
            assert [one.cluster.name for one in manager.reconcilers] == ["hub", "spoke", "hub"]
        assert HubOnly.seen == {"in-hub"}


def test_an_operator_imports_no_part_of_the_server() -> None:
    program = "import sys; from pilothouse.operator import *; print(*sys.modules, sep='\\n')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.split())
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("pilothouse.")}
    assert "pilothouse.operator" in parts
    assert (
        parts & {f"pilothouse.{part}" for part in ("aggregator", "apiserver", "controlplane", "kube", "testing")}
        == set()
    )
    assert len(modules) < 700
