"""Reconcilers against a real server: events, retries, finalizers, status, ownership."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from operator_parts import until
from patience import PATIENCE

from pilothouse.client import Client, Json, ResourceClient
from pilothouse.errors import AlreadyOwned, NotFound, TerminalError
from pilothouse.operator import (
    Condition,
    GenerationChanged,
    Manager,
    Object,
    Reconciler,
    Result,
    Watch,
    definitions,
    kind,
)
from pilothouse.operator.cluster import KindCache
from pilothouse.operator.types import BuiltinKind
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOATS = "boats.example.com/v1"


class ConfigMap(BuiltinKind):
    API_VERSION, KIND, PLURAL = "v1", "ConfigMap", "configmaps"


@kind(group="boats.example.com", version="v1", status=True)
class Boat(Object):
    port: str = ""
    crew: int = 1


@kind(group="boats.example.com", version="v1", status=True, scope="Cluster")
class Fleet(Object):
    size: int = 1


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    async with server() as running:
        client = running.client()
        crds = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        for definition in definitions(Boat, Fleet):
            await crds.create(definition)
        for plural in ("boats", "fleets"):
            name = f"{plural}.boats.example.com"
            await until(client, "apiextensions.k8s.io/v1", "customresourcedefinitions", name, _is_served)
        yield running


def _is_served(definition: Json) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


class Harbour:
    """One namespace of the server, with a manager that sees nothing else."""

    numbers: ClassVar[Iterator[int]] = count()

    def __init__(self, api: API) -> None:
        self.api = api
        self.namespace = f"harbour-{next(self.numbers)}"
        self.client: Client = api.client(in_process=True)
        self.boats = self.client.resource(BOATS, "boats", namespace=self.namespace)
        self.maps = self.client.resource("v1", "configmaps", namespace=self.namespace)

    async def boat(self, name: str, **spec: Any) -> Json:
        return await self.boats.create({"apiVersion": BOATS, "kind": "Boat", "metadata": {"name": name}, "spec": spec})

    async def until(self, resource: ResourceClient, name: str, condition: Callable[[Json], Any] | None) -> Json:
        version, plural = str(resource.resource.group_version), resource.resource.resource
        return await until(self.client, version, plural, name, condition, self.namespace)

    async def has_condition(self, name: str, reason: str) -> Json:
        return await self.until(self.boats, name, lambda obj: reason in {one["reason"] for one in _conditions(obj)})

    @asynccontextmanager
    async def manager(self, *reconcilers: Any, **options: Any) -> AsyncIterator[Manager]:
        await self.client.resource("v1", "namespaces").create({"metadata": {"name": self.namespace}})
        options.setdefault("namespaces", [self.namespace])
        async with Manager(reconcilers, config=self.api.client(in_process=True), **options) as manager:
            await soon(manager.wait_ready())
            yield manager

    @asynccontextmanager
    async def manager_of_all(self, *reconcilers: Any) -> AsyncIterator[Manager]:
        """A manager of all namespaces, with managedFields in its caches."""
        client = self.api.client(in_process=True)
        async with Manager(
            [type(one) for one in reconcilers], config=client, managed_fields=True, name="of-all"
        ) as manager:
            await soon(manager.wait_ready())
            yield manager


def _conditions(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get("conditions") or []


async def soon(awaitable: Awaitable[Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await awaitable


async def eventually(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  (no event to wait for)
            await asyncio.sleep(0.001)


async def idle(manager: Manager) -> None:
    """Return when nothing is queued, running or on its way to the cache."""
    async with asyncio.timeout(PATIENCE):
        quiet = 0
        while quiet < 20:
            await asyncio.sleep(0.005)
            quiet = 0 if manager.is_busy() else quiet + 1


@pytest.fixture
def harbour(api: API) -> Harbour:
    return Harbour(api)


class Counting(Reconciler[Boat]):
    finalizer = "boats.example.com/counted"

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def reconcile(self, boat: Boat) -> Result | None:
        self.calls.append(boat.metadata.name)
        boat.status.conditions.set(Condition("Ready", True, f"Crew{boat.crew}"))
        return None


async def test_a_manager_of_two_namespaces_sees_no_others(harbour: Harbour) -> None:
    second, other = Harbour(harbour.api), Harbour(harbour.api)
    for place in (second, other):
        await harbour.client.resource("v1", "namespaces").create({"metadata": {"name": place.namespace}})
    await other.boat("elsewhere")
    async with harbour.manager(Counting, namespaces=[harbour.namespace, second.namespace]) as manager:
        for place in (harbour, second):
            await place.boat(f"in-{place.namespace}")
            await place.has_condition(f"in-{place.namespace}", "Crew1")
        [reconciler] = manager.reconcilers
        names = {harbour.namespace: f"in-{harbour.namespace}", second.namespace: f"in-{second.namespace}"}
        assert {boat.metadata.namespace: boat.metadata.name for boat in reconciler.list(Boat)} == names
        assert [boat.metadata.name for boat in reconciler.list(Boat, second.namespace)] == [names[second.namespace]]
        assert reconciler.get(Boat, "elsewhere", other.namespace) is None
        assert isinstance(reconciler, Counting)
        assert set(reconciler.calls) == set(names.values())


async def test_own_writes_of_finalizer_and_status_lead_to_no_further_reconcile(harbour: Harbour) -> None:
    counting = Counting()
    async with harbour.manager(counting) as manager:
        await harbour.boat("ann")
        stored = await harbour.has_condition("ann", "Crew1")
        cache = manager.cluster().cached(Boat).informers[harbour.namespace]
        await eventually(lambda: (cache.indexer.get_by_key(f"{harbour.namespace}/ann") or {}).get("status"))
        await idle(manager)
        assert counting.calls == ["ann"]
        assert (await harbour.boats.get("ann"))["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        await harbour.boats.patch("ann", {"spec": {"crew": 2}})
        changed = await harbour.has_condition("ann", "Crew2")
        await idle(manager)
        assert counting.calls == ["ann", "ann"]
        assert _conditions(changed)[0]["observedGeneration"] == 2
        assert _conditions(changed)[0]["lastTransitionTime"] == _conditions(stored)[0]["lastTransitionTime"]


async def test_a_failed_reconcile_is_retried_and_its_status_is_written(harbour: Harbour) -> None:
    class Failing(Reconciler[Boat]):
        failures = 0

        async def reconcile(self, boat: Boat) -> None:
            if self.failures < 2:
                self.failures += 1
                boat.status.conditions.set(Condition("Ready", False, f"Failed{self.failures}"))
                raise RuntimeError("not yet")
            boat.status.conditions.set(Condition("Ready", True, "Done"))

    async with harbour.manager(Failing) as manager:
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Done")
        errors = manager.registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "boat"})
        assert errors == 2


@pytest.mark.parametrize("panic", [SystemExit(3), asyncio.CancelledError(), RecursionError(), TimeoutError()])
async def test_a_panic_concerns_its_object_only(harbour: Harbour, panic: BaseException) -> None:
    class Panicking(Reconciler[Boat]):
        panicked: ClassVar[asyncio.Event] = asyncio.Event()

        async def reconcile(self, boat: Boat) -> None:
            if boat.metadata.name == "bad":
                self.panicked.set()
                raise panic
            boat.status.conditions.set(Condition("Ready", True, "Done"))

    async with harbour.manager(Panicking):
        await harbour.boat("bad")
        await soon(Panicking.panicked.wait())
        await harbour.boat("good")
        await harbour.has_condition("good", "Done")


async def test_a_terminal_error_is_not_retried(harbour: Harbour) -> None:
    class Terminal(Reconciler[Boat]):
        calls = 0

        async def reconcile(self, boat: Boat) -> None:
            type(self).calls += 1
            boat.status.conditions.set(Condition("Ready", False, f"Hopeless{boat.crew}"))
            raise TerminalError("no port")

    async with harbour.manager(Terminal) as manager:
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Hopeless1")
        await idle(manager)
        assert Terminal.calls == 1
        await harbour.boats.patch("ann", {"spec": {"crew": 2}})
        await harbour.has_condition("ann", "Hopeless2")


async def test_an_object_is_never_reconciled_twice_at_once(harbour: Harbour) -> None:
    class Slow(Reconciler[Boat]):
        concurrency = 4
        running: ClassVar[set[str]] = set()
        most = 0

        async def reconcile(self, boat: Boat) -> None:
            name = boat.metadata.name
            assert name not in self.running
            self.running.add(name)
            type(self).most = max(self.most, len(self.running))
            for _ in range(20):
                await asyncio.sleep(0)
            self.running.remove(name)
            boat.status.conditions.set(Condition("Ready", True, f"Crew{boat.crew}"))

    async with harbour.manager(Slow) as manager:
        names = [f"boat{number}" for number in range(6)]
        for name in names:
            await harbour.boat(name)
        for crew in range(2, 6):
            await asyncio.gather(*(harbour.boats.patch(name, {"spec": {"crew": crew}}) for name in names))
        for name in names:
            await harbour.has_condition(name, "Crew5")
        errors = manager.registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "boat"})
        assert errors == 0
        assert Slow.most > 1


async def test_a_result_runs_the_reconcile_again(harbour: Harbour) -> None:
    class Again(Reconciler[Boat]):
        results: ClassVar[list[Result | None]] = [Result(requeue=True), Result(requeue_after=0.01), None]
        calls = 0

        async def reconcile(self, boat: Boat) -> Result | None:
            type(self).calls += 1
            boat.status.conditions.set(Condition("Ready", True, f"Call{self.calls}"))
            return self.results[self.calls - 1]

    async with harbour.manager(Again):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Call3")


async def test_a_finalizer_is_removed_after_a_concurrent_write_and_finalize_runs_once(harbour: Harbour) -> None:
    class Finalizing(Counting):
        finalized = 0

        async def finalize(self, boat: Boat) -> None:
            type(self).finalized += 1
            await harbour.boats.patch(boat.metadata.name, {"metadata": {"labels": {"written": "meanwhile"}}})

    async with harbour.manager(Finalizing()):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Crew1")
        await harbour.boats.delete("ann")
        await harbour.until(harbour.boats, "ann", None)
        assert Finalizing.finalized == 1


async def test_a_failing_or_waiting_finalize_keeps_the_object(harbour: Harbour) -> None:
    class Waiting(Counting):
        answers: ClassVar[list[Any]] = [RuntimeError("busy"), Result(requeue_after=0.01), None]
        finalized = 0

        async def finalize(self, boat: Boat) -> Result | None:
            answer = self.answers[self.finalized]
            type(self).finalized += 1
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, Result) else None

    async with harbour.manager(Waiting()):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Crew1")
        await harbour.boats.delete("ann")
        await harbour.until(harbour.boats, "ann", None)
        assert Waiting.finalized == 3


async def test_an_object_that_is_being_deleted_gets_no_finalizer_and_no_reconcile(harbour: Harbour) -> None:
    counting = Counting()
    async with harbour.manager(counting) as manager:
        meta = {"name": "ann", "finalizers": ["other.example.com/kept"]}
        await harbour.boats.create({"apiVersion": BOATS, "kind": "Boat", "metadata": meta})
        await harbour.has_condition("ann", "Crew1")
        await harbour.boats.delete("ann")
        await harbour.until(harbour.boats, "ann", lambda obj: obj["metadata"]["finalizers"] == meta["finalizers"])
        await idle(manager)
        assert counting.calls == ["ann"]
        await harbour.boats.patch("ann", {"metadata": {"finalizers": None}})
        await harbour.until(harbour.boats, "ann", None)


async def test_a_status_keeps_the_conditions_of_a_concurrent_writer(harbour: Harbour) -> None:
    class Concurrent(Reconciler[Boat]):
        predicates = [GenerationChanged]

        async def reconcile(self, boat: Boat) -> None:
            theirs = {"type": "Theirs", "status": "True", "reason": "Written", "message": ""}
            status = {"conditions": [{**theirs, "lastTransitionTime": "2026-01-01T00:00:00Z"}], "speed": 3}
            await harbour.boats.patch(boat.metadata.name, {"status": status}, subresource="status")
            boat.status.conditions.set(Condition("Ready", True, "Done"))
            boat.status["phase"] = "Afloat"

    async with harbour.manager(Concurrent):
        await harbour.boat("ann")
        stored = await harbour.has_condition("ann", "Done")
        assert {one["type"] for one in _conditions(stored)} == {"Theirs", "Ready"}
        assert (stored["status"]["speed"], stored["status"]["phase"]) == (3, "Afloat")


def manifest(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_reconcile_sees_its_own_writes(harbour: Harbour) -> None:
    class Writing(Reconciler[Boat]):
        owns = ["v1 ConfigMap"]

        async def reconcile(self, boat: Boat) -> None:
            namespace = boat.metadata.namespace
            for step in range(3):
                await self.apply(boat, manifest("log", step=str(step), crew=str(boat.crew)))
                seen = self.get("v1 ConfigMap", "log", namespace)
                assert (seen["data"]["step"], seen["data"]["crew"]) == (str(step), str(boat.crew))
                assert [one["data"]["step"] for one in self.list("v1 ConfigMap", namespace, owner=boat)] == [str(step)]
            await self.delete(seen)
            assert self.get("v1 ConfigMap", "log", namespace) is None
            assert self.list("v1 ConfigMap", owner=boat) == []
            boat.status.conditions.set(Condition("Ready", True, f"Seen{boat.crew}"))

    async with harbour.manager(Writing) as manager:
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Seen1")
        for crew in range(2, 5):
            await harbour.boats.patch("ann", {"spec": {"crew": crew}})
            await harbour.has_condition("ann", f"Seen{crew}")
        errors = manager.registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "boat"})
        assert errors == 0


async def test_cached_objects_are_selected_by_namespace_labels_and_owner(harbour: Harbour) -> None:
    class Selecting(Reconciler[Boat]):
        reads = ["v1 ConfigMap"]

    reconciler = Selecting()
    elsewhere = harbour.client.resource("v1", "configmaps", namespace="default")
    options = {"namespaces": [harbour.namespace, "default"]}
    async with harbour.manager(reconciler, **options) as manager, harbour.manager_of_all(reconciler) as everywhere:
        owner = await harbour.boat("ann")
        reference = {"apiVersion": BOATS, "kind": "Boat", "name": "ann", "uid": owner["metadata"]["uid"]}
        for name, labels in (("a", {"app": "web"}), ("b", {"app": "web", "tier": "1"}), ("c", {"tier": "1"})):
            await harbour.maps.create({"metadata": {"name": name, "labels": labels, "ownerReferences": [reference]}})
        await elsewhere.create({"metadata": {"name": f"d-{harbour.namespace}", "labels": {"app": "web"}}})
        for managed, places in ((manager, {harbour.namespace, "default"}), (everywhere, None)):
            cache = managed.cluster().cached("v1 ConfigMap")
            assert places is None or set(cache.informers) == places

            def names(cache: KindCache = cache, **selected: str) -> set[str]:
                found = (one["metadata"]["name"] for one in cache.list(**selected))
                return {name for name in found if name in "abc" or name.endswith(harbour.namespace)}

            def are_four(names: Callable[[], set[str]] = names) -> bool:
                return len(names()) == 4

            await eventually(are_four)
            assert names(selector="app=web") == {"a", "b", f"d-{harbour.namespace}"}
            assert names(selector="app=web", namespace=harbour.namespace) == {"a", "b"}
            assert names(selector="app in (web),tier") == {"b"}
            assert names(selector="tier!=1", namespace=harbour.namespace) == {"a"}
            assert names(owner=owner["metadata"]["uid"], selector="tier") == {"b", "c"}
            assert names(namespace="nowhere") == set()
        copy = manager.cluster().cached("v1 ConfigMap").get(f"{harbour.namespace}/a")
        assert copy is not None
        copy["metadata"]["labels"].clear()
        assert "managedFields" not in copy["metadata"]
        again = everywhere.cluster().cached("v1 ConfigMap").get(f"{harbour.namespace}/a")
        assert again is not None
        assert again["metadata"]["labels"] == {"app": "web"}
        assert again["metadata"]["managedFields"]


async def test_retries_follow_the_rate_limiter_of_the_reconciler(harbour: Harbour) -> None:
    class Recorded:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def when(self, item: str) -> float:
            self.asked.append(item)
            return 0.0

        def forget(self, item: str) -> None:
            self.asked.append(f"forget {item}")

        def num_requeues(self, item: str) -> int:
            return self.asked.count(item)

    limiter = Recorded()

    class Failing(Reconciler[Boat]):
        calls = 0

        def rate_limiter(self) -> Any:
            return limiter

        async def reconcile(self, boat: Boat) -> Result | None:
            self.calls += 1
            if self.calls < 3:
                raise ValueError("not yet")
            boat.status.conditions.set(Condition("Ready", True, "Third"))
            return Result(requeue=self.calls == 3)

    async with harbour.manager(Failing) as manager:
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Third")
        await idle(manager)
    key = f"{harbour.namespace}/ann"
    assert limiter.asked[:3] == [key, key, key]
    assert limiter.asked[-1] == f"forget {key}"


async def test_a_mapping_function_may_be_a_coroutine(harbour: Harbour) -> None:
    async def boats_of(config: Json) -> list[str]:
        await asyncio.sleep(0)
        return [f"{harbour.namespace}/{name}" for name in config["data"]]

    class Mapping(Reconciler[Boat]):
        watches = [Watch("v1 ConfigMap", to=boats_of, predicates=[lambda event: "data" in event.object])]
        concurrency = 4

        async def reconcile(self, boat: Boat) -> None:
            known = self.get("v1 ConfigMap", "crews", boat.metadata.namespace)
            crew = (known or {"data": {}})["data"].get(boat.metadata.name, "None")
            boat.status.conditions.set(Condition("Ready", True, f"Crew{crew}"))

    async with harbour.manager(Mapping):
        for name in ("ann", "bob"):
            await harbour.boat(name)
        await harbour.maps.create({"metadata": {"name": "empty"}})
        await harbour.maps.create({"metadata": {"name": "crews"}, "data": {"ann": "One", "bob": "Two"}})
        await harbour.has_condition("ann", "CrewOne")
        await harbour.has_condition("bob", "CrewTwo")


async def test_an_apply_that_changes_nothing_sends_nothing_until_somebody_changes_the_object(harbour: Harbour) -> None:
    class Applying(Reconciler[Boat]):
        owns = ["v1 ConfigMap"]
        calls = 0

        async def reconcile(self, boat: Boat) -> None:
            await self.apply(boat, manifest("log", crew=str(boat.crew)))
            type(self).calls += 1

    async with harbour.manager(Applying) as manager:
        sent: list[str] = []
        transport: Any = manager.cluster().client.transport
        send = transport.send

        async def counted(request: Any) -> Any:
            sent.append(request.method)
            return await send(request)

        transport.send = counted
        await harbour.boat("ann")
        await harbour.until(harbour.maps, "log", lambda obj: obj["data"] == {"crew": "1"})
        await idle(manager)
        calls = Applying.calls
        manager.enqueue(Boat, f"{harbour.namespace}/ann")
        await eventually(lambda: calls != Applying.calls)
        assert sent.count("PATCH") == 1
        await harbour.maps.patch("log", {"data": {"crew": "9"}})
        await harbour.until(harbour.maps, "log", lambda obj: obj["data"] == {"crew": "1"})
        await harbour.maps.delete("log")
        await harbour.until(harbour.maps, "log", lambda obj: obj["data"] == {"crew": "1"})


async def test_an_object_of_another_controller_is_left_alone(harbour: Harbour) -> None:
    class Greedy(Reconciler[Boat]):
        owns = ["v1 ConfigMap"]

        async def reconcile(self, boat: Boat) -> None:
            try:
                await self.apply(boat, manifest("log", owner=boat.metadata.name))
                reason = "Applied"
            except AlreadyOwned as error:
                reason = "Refused" if "is controlled by Boat" in str(error) else "Unclear"
            boat.status.conditions.set(Condition("Ready", reason == "Applied", reason))

    async with harbour.manager(Greedy):
        await harbour.boat("first")
        await harbour.has_condition("first", "Applied")
        await harbour.boat("second")
        await harbour.has_condition("second", "Refused")
        assert (await harbour.maps.get("log"))["data"] == {"owner": "first"}


async def test_a_cluster_scoped_owner_has_objects_in_namespaces(harbour: Harbour) -> None:
    class Owning(Reconciler[Fleet]):
        owns = ["v1 ConfigMap"]

        async def reconcile(self, fleet: Fleet) -> None:
            log = manifest(f"log-{fleet.metadata.name}", size=str(fleet.size))
            log["metadata"]["namespace"] = harbour.namespace
            await self.apply(fleet, log)

    fleets = harbour.client.resource(BOATS, "fleets")
    async with harbour.manager(Owning):
        await fleets.create({"apiVersion": BOATS, "kind": "Fleet", "metadata": {"name": harbour.namespace}})
        name = f"log-{harbour.namespace}"
        made = await harbour.until(harbour.maps, name, lambda obj: True)
        await harbour.maps.delete(name)
        await harbour.until(harbour.maps, name, lambda obj: obj["metadata"]["uid"] != made["metadata"]["uid"])


async def test_owners_that_cannot_own_are_refused(harbour: Harbour) -> None:
    class Wrong(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            elsewhere = manifest("log")
            elsewhere["metadata"]["namespace"] = "default"
            with pytest.raises(ValueError, match="cannot be owned by Boat"):
                await self.apply(boat, elsewhere)
            scoped = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
            with pytest.raises(ValueError, match="is cluster-scoped"):
                await self.apply(boat, scoped)
            with pytest.raises(LookupError, match="declare it in owns, watches or reads"):
                self.get("v1 Secret", "x", boat.metadata.namespace)
            boat.status.conditions.set(Condition("Ready", True, "Refused"))

    async with harbour.manager(Wrong):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Refused")


async def test_a_mapping_function_that_raises_loses_no_other_event(harbour: Harbour) -> None:
    class Mapping(Reconciler[Boat]):
        watches = [Watch("v1 ConfigMap", to="boats_of"), Watch(ConfigMap, to=lambda config: [])]

        def boats_of(self, config: Json) -> list[str]:
            return [f"{harbour.namespace}/{config['data']['boat']}"]

        async def reconcile(self, boat: Boat) -> None:
            seen = self.get("v1 ConfigMap", "good", boat.metadata.namespace)
            boat.status.conditions.set(Condition("Ready", seen is not None, "SeenGood" if seen else "SeenNothing"))

    async with harbour.manager(Mapping):
        await harbour.boat("ann")
        await harbour.maps.create({"metadata": {"name": "broken"}})
        await harbour.maps.create({"metadata": {"name": "good"}, "data": {"boat": "ann"}})
        await harbour.until(
            harbour.boats, "ann", lambda obj: _conditions(obj) and _conditions(obj)[0]["reason"] >= "Seen2"
        )


async def test_a_built_in_kind_is_reconciled_as_json(harbour: Harbour) -> None:
    class Labelling(Reconciler[ConfigMap]):
        async def reconcile(self, config: ConfigMap) -> None:
            if "seen" not in config["metadata"].get("labels", {}):
                await self.patch(config, {"metadata": {"labels": {"seen": "yes"}}})

    async with harbour.manager(Labelling):
        await harbour.maps.create({"metadata": {"name": "a"}})
        await harbour.until(harbour.maps, "a", lambda obj: (obj["metadata"].get("labels") or {}).get("seen") == "yes")


async def test_a_kind_that_is_not_installed_is_waited_for(harbour: Harbour, caplog: pytest.LogCaptureFixture) -> None:
    @kind(group="late.example.com", version="v1", status=True)
    class Late(Object):
        size: int = 1

    class LateReconciler(Reconciler[Late]):
        async def reconcile(self, late: Late) -> None:
            late.status.conditions.set(Condition("Ready", True, "Done"))

    crds = harbour.client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    with caplog.at_level(logging.WARNING, logger="pilothouse.operator"):
        async with Manager([LateReconciler], config=harbour.api.client(in_process=True)) as manager:
            await eventually(lambda: "waiting for late.example.com/v1 Late" in caplog.text)
            assert "install its CustomResourceDefinition" in caplog.text
            await crds.create(definitions(Late)[0])
            await soon(manager.wait_ready())
            lates = harbour.client.resource("late.example.com/v1", "lates", namespace="default")
            await lates.create({"apiVersion": "late.example.com/v1", "kind": "Late", "metadata": {"name": "a"}})
            await until(harbour.client, "late.example.com/v1", "lates", "a", lambda obj: obj.get("status"))


async def test_a_hanging_reconcile_is_abandoned_at_the_deadline(
    harbour: Harbour, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.operator.manager._CANCEL_TIMEOUT", 0.1)
    started, release = asyncio.Event(), asyncio.Event()

    class Hanging(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            started.set()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    async with harbour.manager(Hanging, graceful_shutdown_timeout=0.1):
        await harbour.boat("ann")
        await soon(started.wait())
    assert f"of {harbour.namespace}/ann ignores its cancellation and is abandoned" in caplog.text
    release.set()


async def test_a_stop_lets_a_running_reconcile_finish_and_drops_the_queue(harbour: Harbour) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    finished: list[str] = []

    class Finishing(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            started.set()
            await go_on.wait()
            finished.append(boat.metadata.name)
            boat.status.conditions.set(Condition("Ready", True, "Done"))

    async with harbour.manager(Finishing) as manager:
        await harbour.boat("ann")
        await soon(started.wait())
        await harbour.boat("bob")
        stopping = asyncio.ensure_future(manager.stop())
        await eventually(lambda: all(one.is_stopping for one in manager._controllers))
        go_on.set()
        await soon(stopping)
    assert finished == ["ann"]
    assert _conditions(await harbour.boats.get("ann"))[0]["reason"] == "Done"


async def test_a_reconcile_that_takes_too_long_is_a_failure(harbour: Harbour) -> None:
    class Timed(Reconciler[Boat]):
        timeout = 0.05
        calls = 0

        async def reconcile(self, boat: Boat) -> None:
            type(self).calls += 1
            if self.calls == 1:
                await asyncio.Event().wait()
            boat.status.conditions.set(Condition("Ready", True, "Done"))

    async with harbour.manager(Timed):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Done")


async def test_an_event_is_recorded(harbour: Harbour) -> None:
    class Recording(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            self.event(boat, "Launched", "it swims", type="Warning")

    async with harbour.manager(Recording):
        await harbour.boat("ann")
        events = harbour.client.resource("v1", "events", namespace=harbour.namespace)
        async with asyncio.timeout(PATIENCE), await events.watch() as watch:
            event = (await anext(watch)).object
        assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("Launched", "Warning", "ann")
        assert event["source"] == {"component": "recording-operator"}


async def test_deleting_a_missing_object_raises_not_found(harbour: Harbour) -> None:
    class Deleting(Reconciler[Boat]):
        async def reconcile(self, boat: Boat) -> None:
            with pytest.raises(NotFound):
                await self.delete({**manifest("none"), "metadata": {"name": "none", "namespace": harbour.namespace}})
            boat.status.conditions.set(Condition("Ready", True, "Done"))

    async with harbour.manager(Deleting):
        await harbour.boat("ann")
        await harbour.has_condition("ann", "Done")


async def test_a_manager_that_waits_for_a_kind_is_idle_and_stops_at_once(harbour: Harbour) -> None:
    @kind(group="never.example.com", version="v1")
    class Never(Object):
        size: int = 1

    class NeverReconciler(Reconciler[Never]):
        async def reconcile(self, never: Never) -> None: ...

    async with Manager([NeverReconciler], config=harbour.client, graceful_shutdown_timeout=10 * PATIENCE) as manager:
        await eventually(lambda: manager.cluster().missing)
        assert not manager.is_busy()
        await soon(manager.stop())


async def test_a_runnable_may_end_and_a_failed_one_ends_the_manager(harbour: Harbour) -> None:
    ended, fail = asyncio.Event(), asyncio.Event()

    async def short(manager: Manager) -> None:
        ended.set()

    async def failing(manager: Manager) -> None:
        await fail.wait()
        raise RuntimeError("out of fuel")

    manager = Manager([Counting], config=harbour.client, runnables=[short, failing])
    await manager.start()
    await soon(manager.wait_ready())
    await soon(ended.wait())
    assert manager.is_leading
    fail.set()
    with pytest.raises(RuntimeError, match="out of fuel"):
        await soon(manager.wait())
    with pytest.raises(RuntimeError, match="out of fuel"):
        await soon(manager.stop())
