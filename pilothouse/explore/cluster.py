"""One server of an exploration: setup, snapshot, steps of the user, and idleness by rules instead of sleeps.

Virtual time stands still while anything has work, and advances only when everything is idle.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

import orjson

from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.bench.bench import Bench
from pilothouse.bench.scope import ProgramSelection
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest_mapper import RESTMapper
from pilothouse.explore.model import Change, key_of
from pilothouse.explore.operators import Access, Instance, explored_controllers, load_function
from pilothouse.explore.scenario import Scenario, ScenarioError
from pilothouse.machinery.cel.environment import CompilationFailed, Environment
from pilothouse.machinery.cel.program import EvaluationFailed
from pilothouse.machinery.cel.program import Program as CelProgram
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.testing.access import kubeconfig_with
from pilothouse.testing.api import API
from pilothouse.testing.bench import fault_object, path_of
from pilothouse.testing.running import server

USERS: Final = ("explore:operator", "explore:operator-2")
"""Users of the first and of the second instance of the operator."""
CONTROLLERS: Final = (
    "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,"
    "garbage-collector-controller"
)
_IDLE_TURNS: Final = 25
"""Event loop turns without work: an event takes fewer turns from the store to the queue of a controller."""
_FEW_TURNS: Final = 6
_STUCK_TURNS: Final = 400
"""Turns without progress after which a busy instance waits for time to pass."""
_POLL: Final = 0.05
_IGNORED_KEYS: Final = (
    *("/registry/events/", "/registry/leases/", "/registry/masterleases/", "/registry/apiregistration.k8s.io/"),
    *("/registry/flowschemas/", "/registry/prioritylevelconfigurations/", "/registry/clusterroles/system:"),
    *("/registry/clusterrolebindings/system:", "/registry/ranges/", "/registry/serviceips/"),
    "/registry/serviceaccounts/kube-system/",
)
_NODE_LEASES: Final = "kube-node-lease"


@asynccontextmanager
async def clusters(scenario: Scenario, count: int) -> AsyncIterator[list[ExploreCluster]]:
    """Run servers with the setup of the scenario, their clocks stopped. Raises ScenarioError, StartError."""
    async with AsyncExitStack() as opened:
        yield [await opened.enter_async_context(_cluster(scenario)) for _ in range(count)]


@asynccontextmanager
async def _cluster(scenario: Scenario) -> AsyncIterator[ExploreCluster]:
    with TemporaryDirectory(prefix="explore-") as name:
        folder, tokens = Path(name), [secrets.token_urlsafe(16) for _ in USERS]
        file = folder / "tokens.csv"
        file.touch(mode=0o600)
        lines = [f'{token},{user},{user},"system:masters"\n' for token, user in zip(tokens, USERS, strict=True)]
        file.write_text("".join(lines))
        flags: dict[str, Any] = {"controllers": CONTROLLERS, "etcd_compaction_interval": "0s", **scenario.flags}
        if scenario.program.service_account:
            flags.setdefault("authorization_mode", "RBAC")
        explored = [f"-{one.name}" for one in explored_controllers(scenario.program)]
        flags |= {
            "controllers": ",".join([*explored, flags["controllers"]]),
            "testing": True,
            "token_auth_file": file,
        }
        async with server(**flags) as api:
            cluster = ExploreCluster(scenario, api, folder, tokens)
            await cluster.prepare()
            yield cluster


class ExploreCluster:
    """A server whose clock is stopped, with a snapshot after the setup of the scenario."""

    def __init__(self, scenario: Scenario, api: API, folder: Path, tokens: list[str]) -> None:
        assert api.bench is not None, "the server runs in this event loop, with its test bench"
        assert api.snapshots is not None
        assert api.handler is not None
        self.scenario, self.api, self.folder = scenario, api, folder
        self.bench: Bench = api.bench
        self.store = api.snapshots.store
        self.app = AsgiApp(api.handler)
        self._tokens = tokens
        self._mapper = RESTMapper(DiscoveryClient(api.client(in_process=True)))
        self.instances: list[Instance] = []
        self.frozen: list[Instance] = []
        """Instances whose requests are held: never idle, and not waited for."""
        self._snapshot: Any = None
        self._idle_since: tuple[tuple[int, ...], list[Instance]] | None = None
        """Signature and external instances of the last idle moment."""

    @property
    def users(self) -> tuple[str, ...]:
        """User names of the operator's requests."""
        if account := self.scenario.program.service_account:
            return (f"system:serviceaccount:{account.replace('/', ':')}",)
        return USERS

    async def prepare(self) -> None:
        """Stop the clock, apply the setup, and save the snapshot. Raises ScenarioError."""
        await self.api.settle(timeout=300)
        await self.api.clock.stop()
        for obj in self.scenario.setup:
            await self.apply(obj)
            if obj["kind"] == "CustomResourceDefinition":
                await self.wait_served(obj)
        if account := self.scenario.program.service_account:
            await self.api.service_account(account)
        await self.idle()
        self._snapshot = await self.api.snapshot()

    async def restore(self) -> int:
        """Restore the snapshot; return the revision."""
        self._idle_since = None
        for plural in ("faults", "recordings"):
            await self.api.request("DELETE", path_of(plural))
        assert self.api.snapshots is not None
        return await self.api.snapshots.restore(self._snapshot)

    async def access(self, index: int) -> Access:
        """Return the access of an instance: 0 is the first instance, 1 the second."""
        user, token = USERS[index], self._tokens[index]
        if account := self.scenario.program.service_account:
            namespace, _, name = account.partition("/")
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
            answer = await self.api.request("POST", path, {"spec": {"expirationSeconds": 86400}})
            user, token = self.users[0], answer.json["status"]["token"]
        file = self.folder / f"{index}.kubeconfig"
        kubeconfig_with(self.api.kubeconfig, {"token": token}, file)
        return Access(user, token, file, self.app, self.bench, self.folder)

    # Idleness

    async def idle(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Wait until nothing has work at this moment of virtual time. Return False if `interrupted` came true."""
        quiet = turns = 0
        signature: tuple[int, ...] = ()
        while True:
            if interrupted():
                return False
            now = self._signature()
            turns = turns + 1 if now == signature else 0
            signature = now
            quiet = 0 if turns == 0 or self.bench.in_flight else quiet + 1
            if quiet >= _IDLE_TURNS and self._is_busy():
                quiet = 0
            if quiet >= _IDLE_TURNS or (turns >= _STUCK_TURNS and not self.bench.in_flight):
                if not self._external():
                    return True
                return await self._external_idle(interrupted)
            await yield_to_loop()

    def _is_busy(self) -> bool:
        return bool(self.bench.quiescence.busy(0.0)) or any(one.busy() for one in self._awaited())

    async def is_quiet(self) -> bool:
        """Whether a few turns bring no work: a cheap check after a timer, most of which concern no operator."""
        before = self._signature()
        for _ in range(_FEW_TURNS):
            await yield_to_loop()
        return (
            self._signature() == before and not self.bench.in_flight and not any(one.busy() for one in self._awaited())
        )

    async def _external_idle(self, interrupted: Callable[[], bool]) -> bool:
        """Wait until programs outside of this process are idle for `quietFor`, unless they are idle since the last
        call.
        """
        external, selection = self._external(), ProgramSelection(quiet_for=0.0)

        def is_busy() -> bool:
            busy = [one for one in external if one.busy()]  # asks each instance: the answer is since the last question
            return bool(busy or self.bench.busy_programs(selection) or self.bench.quiescence.busy(0.0))

        since, signature = time.monotonic(), self._signature()
        if self._idle_since == (signature, external) and not is_busy():
            return True
        while time.monotonic() - since < self.scenario.program.quiet_for:
            if interrupted():
                return False
            await asyncio.sleep(_POLL)
            now = self._signature()
            if is_busy() or now != signature:
                since, signature = time.monotonic(), now
            if any(one.failure() for one in external):
                return True
        self._idle_since = (signature, external)
        return True

    def _awaited(self) -> list[Instance]:
        return [one for one in self.instances if one not in self.frozen and not one.is_external]

    def _external(self) -> list[Instance]:
        return [one for one in self.instances if one.is_external and one not in self.frozen]

    def _signature(self) -> tuple[int, ...]:
        """Changes with every request and every event of the operator."""
        return (self.bench.requests, self.bench.changes)

    async def advance(self, seconds: float) -> None:
        """Advance virtual time; due work runs at its own time."""

        async def let_work() -> None:
            if not await self.is_quiet():
                await self.idle()

        await self.bench.time.step(seconds, let_work)
        await self.idle()

    async def jump(self, seconds: float) -> None:
        """Set virtual time ahead, without the time in between."""

        async def let_work() -> None:
            await self.idle()

        await self.bench.time.set(self.bench.time.wall() + seconds, let_work)

    # Objects

    async def mapping(self, obj: Json) -> tuple[str, bool]:
        """Return the resource path without namespace, and whether the kind is namespaced. Raises ScenarioError."""
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        kind = GroupVersionKind(group, version, obj["kind"])
        try:
            mapping = await self._mapper.mapping(kind.group_kind, version)
        except Exception as error:
            raise ScenarioError(f"{obj['apiVersion']} {obj['kind']}: {error}") from None
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{prefix}/{{}}{mapping.resource.resource}", mapping.namespaced

    async def path(self, reference: Json) -> str:
        """Return the path of `{apiVersion, kind, namespace, name}`. Raises ScenarioError."""
        template, namespaced = await self.mapping(reference)
        meta = reference.get("metadata") or reference
        place = f"namespaces/{meta.get('namespace') or 'default'}/" if namespaced else ""
        return f"{template.format(place)}/{quote(meta['name'])}"

    async def resource_path(self, group: str, resource: str, namespace: str, name: str) -> str:
        """Return the path of an object by its resource, in the preferred version of the group."""
        place = f"namespaces/{namespace}/" if namespace else ""
        if not group:
            return f"/api/v1/{place}{resource}/{quote(name)}"
        document = (await self.api.request("GET", f"/apis/{group}")).json
        return f"/apis/{document['preferredVersion']['groupVersion']}/{place}{resource}/{quote(name)}"

    async def apply(self, obj: Json) -> None:
        """Apply the object as the user. Raises ScenarioError."""
        path = await self.path(obj)
        answer = await self.api.request(
            "PATCH", f"{path}?fieldManager=explore&force=true", obj, media="application/apply-patch+yaml"
        )
        if answer.status >= 400:
            raise ScenarioError(f"cannot apply {obj['kind']} {obj['metadata']['name']}: {answer.json['message']}")

    async def wait_served(self, definition: Json) -> None:
        spec = definition["spec"]
        version = next(one["name"] for one in spec["versions"] if one.get("served"))
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        while (await self.api.request("GET", f"{path}?limit=1")).status == 404:
            await self.advance(0.5)

    async def changes(self, after: int) -> list[Change]:
        """Return every change after the revision, without kinds that say nothing about the operator."""
        end = await self.store.current_revision()
        found: list[Change] = []
        revision = after
        if end <= after:
            return []
        watch = self.store.watch("/registry/", after=after)
        try:
            async for batch in watch:
                found += [
                    Change(event.revision, event.key, _object(event.entry), _object(event.previous))
                    for event in batch.events
                    if not event.key.startswith(_IGNORED_KEYS)
                ]
                revision = max(revision, batch.revision)
                if revision >= end:
                    break
        finally:
            await watch.aclose()
        return found

    async def final(self) -> dict[str, Json]:
        """Return all objects by `Kind.group namespace/name`."""
        page = await self.store.list("/registry/")
        objects = (_object(entry) for entry in page.entries if not entry.key.startswith(_IGNORED_KEYS))
        return {key_of(obj): obj for obj in objects if obj is not None and obj.get("kind")}

    async def add_fault(self, name: str, **wishes: Any) -> None:
        """Create a Fault. Raises ScenarioError."""
        answer = await self.api.request("POST", path_of("faults"), fault_object(name, wishes))
        if answer.status >= 400:
            raise ScenarioError(f"cannot create the fault {name}: {answer.json['message']}")

    async def remove_fault(self, name: str) -> None:
        await self.api.request("DELETE", path_of("faults", name))


def _object(entry: Any) -> Json | None:
    if entry is None:
        return None
    try:
        obj: Json = orjson.loads(entry.value)
    except orjson.JSONDecodeError:
        return None
    if isinstance(obj.get("metadata"), dict):
        obj["metadata"]["resourceVersion"] = str(entry.modified)
    return obj


_VARIABLES: Final = ("object", "oldObject", "objects")


def compile_cel(expression: str) -> CelProgram:
    """Compile an expression over `object`, `oldObject` and `objects`. Raises ScenarioError."""
    try:
        return CelProgram(Environment(dict.fromkeys(_VARIABLES, "dyn"), bindings=True).compile(expression).program)
    except CompilationFailed as error:
        raise ScenarioError(f"invalid CEL expression {expression!r}: {error}") from None


def is_true(program: CelProgram, **variables: Any) -> tuple[bool, str]:
    """Evaluate; return whether the value is true, and the error of a failed evaluation."""
    try:
        return program.evaluate({name: variables.get(name) for name in _VARIABLES}) is True, ""
    except EvaluationFailed as error:
        return False, str(error)


def python_invariant(path: str, directory: Path) -> Callable[[dict[str, Json]], Iterable[str]]:
    """Load a Python invariant. Raises ScenarioError."""
    return load_function(path, directory)
