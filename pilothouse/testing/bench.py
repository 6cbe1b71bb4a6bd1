"""The test bench of a server with `testing=True`, for code in an event loop: wrappers of testing.pilothouse.dev."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pilothouse.apiserver.storage.snapshots import StoredSnapshot
from pilothouse.client.idleness import PROGRAMS, Workers
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.times import format_time, parse_time

if TYPE_CHECKING:
    from pilothouse.testing.api import API

MERGE_PATCH: Final = "application/merge-patch+json"
_POLL_INTERVAL: Final = 0.02
_SOON: Final = 0.5
"""Seconds. Work that is scheduled within this time, such as a retry, counts as busy."""
_TURNS: Final = 4
_OWN_AGENT: Final = "pilothouse"


@dataclass(frozen=True, slots=True)
class BenchObject:
    """A created object of the test bench."""

    api: API
    plural: str
    name: str

    async def read(self) -> Json:
        """Return the current object. Raises StatusError."""
        return await request_json(self.api, "GET", path_of(self.plural, self.name))

    async def status(self) -> Json:
        """Return the status; empty if there is none yet. Raises StatusError."""
        status: Json = (await self.read()).get("status") or {}
        return status

    async def remove(self) -> None:
        """Delete the object if it exists. Raises StatusError."""
        with suppress(NotFound):
            await request_json(self.api, "DELETE", path_of(self.plural, self.name))


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of the server."""

    api: API

    async def add(self, name: str = "", **wishes: Any) -> BenchObject:
        """Create a Fault. Raises StatusError, and TypeError for unknown fields.

        await api.faults.add(verbs=["create"], resources=["pods"], times=1, answer=503)
        """
        return await create_object(self.api, "faults", fault_object(name, wishes))


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The server's clock. Each method returns after the change, when all timers that are due have run."""

    api: API

    async def step(self, duration: str) -> None:
        """Advance the time: `await api.clock.step("5m")`. Raises StatusError."""
        await self._change({"step": duration})

    async def set(self, moment: datetime | str) -> None:
        """Set the time. Raises StatusError."""
        await self._change({"time": moment if isinstance(moment, str) else format_time(moment)})

    async def stop(self) -> None:
        """Stop the clock; only steps advance it. Raises StatusError."""
        await self._change({"stopped": True})

    async def run(self, speed: float = 1.0) -> None:
        """Start the clock again, at the given speed. Raises StatusError."""
        await self._change({"stopped": False, "speed": speed})

    async def now(self) -> datetime:
        """Return the server's time, in whole seconds. Raises StatusError."""
        clock = await request_json(self.api, "GET", path_of("clocks", "server"))
        moment = parse_time(clock["status"]["time"])
        assert moment is not None
        return moment

    async def _change(self, spec: Json) -> None:
        await request_json(self.api, "PATCH", path_of("clocks", "server"), {"spec": spec}, media=MERGE_PATCH)


@asynccontextmanager
async def recorded(api: API, name: str, spec: Json) -> AsyncIterator[BenchObject]:
    recording = await create_object(api, "recordings", bench_object("Recording", name, spec))
    try:
        yield recording
    finally:
        await recording.remove()


async def clear(api: API) -> None:
    """Delete all faults and recordings, and reset the clock to the machine's time. Raises StatusError."""
    for plural in ("faults", "recordings", "settleds"):
        await request_json(api, "DELETE", path_of(plural))
    clock = await request_json(api, "GET", path_of("clocks", "server"))
    if clock.get("spec") or clock["status"]["ahead"] != "0s":
        machines = format_time(datetime.now(UTC))
        spec = {"stopped": None, "speed": None, "time": machines}
        await request_json(api, "PATCH", path_of("clocks", "server"), {"spec": spec}, media=MERGE_PATCH)


async def settle(api: API, timeout: float, user_agents: Iterable[str], quiet_for: str) -> None:
    """Wait until the server, its programs and the controllers in this process are quiescent.

    Raises TimeoutError with the busy components, StatusError.
    """
    end = time.monotonic() + timeout
    await yield_to_loop()  # controllers of this loop may be about to start
    while True:
        busy = await _busy_here(PROGRAMS, end)
        before = _activity(PROGRAMS)
        busy = busy or await _busy_on_server(api, end, [*user_agents], quiet_for)
        busy = busy or await _let_loops_turn(PROGRAMS, end) or PROGRAMS.busy(_SOON)
        if not busy and _activity(PROGRAMS) == before:
            return
        if time.monotonic() >= end:
            names = dict.fromkeys([*busy, *PROGRAMS.busy(_SOON)]) or ["reconciles go on"]
            raise TimeoutError(f"not quiescent within {timeout:g} s: {', '.join(names)}")


async def _busy_on_server(api: API, end: float, user_agents: list[str], quiet_for: str) -> list[str]:
    """Wait for a Settled object; return the components that are busy at the timeout."""
    programs: Json = {"quietFor": quiet_for} if quiet_for else {}
    if user_agents:
        programs["userAgents"] = user_agents
    elif PROGRAMS.members():
        agents = {_OWN_AGENT, *(getattr(worker, "user_agent", _OWN_AGENT) for worker in PROGRAMS.members())}
        programs["ignoredUserAgents"] = sorted(agents)  # followed in this process, exactly
    milliseconds = max(int((end - time.monotonic()) * 1000), 1)
    spec = {"timeout": f"{milliseconds}ms", **({"programs": programs} if programs else {})}
    settled = await create_object(api, "settleds", bench_object("Settled", "", spec))
    try:
        while not (status := await settled.status()):  # noqa: ASYNC110  # a watch would be a request in flight
            await asyncio.sleep(_POLL_INTERVAL)
    finally:
        await settled.remove()
    return list(status.get("waitingFor") or ())


async def _busy_here(programs: Workers, end: float) -> list[str]:
    """Wait until the controllers and informers in this process are idle; return the busy ones at `end`."""
    while (busy := programs.busy(_SOON)) and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_INTERVAL)
    return busy


async def _let_loops_turn(programs: Workers, end: float) -> list[str]:
    """Let the event loops of the controllers in this process read their sockets; return the blocked ones at `end`."""
    by_loop = {loop: worker for worker in programs.members() if (loop := getattr(worker, "loop", None)) is not None}
    for loop, worker in by_loop.items():
        for _ in range(_TURNS):
            turned: Future[None] = Future()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_resolve, turned)
                try:
                    await asyncio.wait_for(asyncio.wrap_future(turned), max(end - time.monotonic(), 0.0))
                except TimeoutError:
                    return [f"the event loop of {getattr(worker, 'name', worker)}, which is blocked"]
    return []


def _resolve(turned: Future[None]) -> None:
    if turned.set_running_or_notify_cancel():
        turned.set_result(None)


def _activity(programs: Workers) -> int:
    return sum(getattr(worker, "activity", 0) for worker in programs.members())


@asynccontextmanager
async def fault_in_force(api: API, name: str, wishes: dict[str, Any]) -> AsyncIterator[BenchObject]:
    fault = await Faults(api).add(name, **wishes)
    try:
        yield fault
    finally:
        await fault.remove()


async def create_object(api: API, plural: str, obj: Json) -> BenchObject:
    """Create the object. Raises StatusError."""
    return BenchObject(api, plural, name_of(await request_json(api, "POST", path_of(plural), obj)))


async def request_json(
    api: API, method: str, path: str, body: Json | None = None, *, media: str = "application/json"
) -> Json:
    """Send a request and return its JSON. Raises StatusError."""
    answer = await api.request(method, path, body, media=media)
    if answer.status >= 400:
        raise from_status(answer.json, http_code=answer.status)
    result: Json = answer.json
    return result


_API_VERSION: Final = "testing.pilothouse.dev/v1alpha1"
_MATCH: Final = ("verbs", "resources", "namespaces", "names", "users", "userAgents", "rate", "skip", "times")
_CONNECTIONS: Final = ("cut", "hold", "closeConnections")
_EFFECT: Final = ("answer", "delay", *_CONNECTIONS, "watch", "events", "staleByRevisions", "atRevision")


def path_of(plural: str, name: str = "", subresource: str = "") -> str:
    return "/".join(part for part in (f"/apis/{_API_VERSION}/{plural}", name, subresource) if part)


def bench_object(kind: str, name: str, spec: Json) -> Json:
    name = name or f"{kind.lower()}-{uuid4().hex[:8]}"
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def fault_object(name: str, wishes: dict[str, Any]) -> Json:
    """Return a Fault with keywords as fields. `answer=503` sets the code, `delay="1s"` the duration; underscores
    become camelCase.

    Raises TypeError for unknown fields.
    """
    fields = {_camel(word): value for word, value in wishes.items() if value is not None}
    if unknown := sorted(set(fields) - {*_MATCH, *_EFFECT}):
        raise TypeError(
            f"unknown fields of a Fault: {', '.join(unknown)}; match fields: {', '.join(_MATCH)}; "
            f"effect fields: {', '.join(_EFFECT)}"
        )
    if isinstance(fields.get("answer"), int):
        fields["answer"] = {"code": fields["answer"]}
    if isinstance(fields.get("delay"), str):
        fields["delay"] = {"duration": fields["delay"]}
    match = {word: _listed(fields[word]) for word in _MATCH if word in fields}
    return bench_object(
        "Fault", name, {"match": match, "effect": {word: fields[word] for word in _EFFECT if word in fields}}
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _camel(word: str) -> str:
    first, *others = word.split("_")
    return first + "".join(other.capitalize() for other in others)


_SNAPSHOTS = "snapshots"
_RESTORE = {"spec": {"restore": True}}


@dataclass(frozen=True, slots=True)
class RemoteSnapshot(StoredSnapshot):
    """Snapshot that a server in another process keeps. Has no entries here."""

    name: str = ""


async def save_remote(api: API) -> RemoteSnapshot:
    """Save a snapshot. Raises ValueError if the server has no test bench, StatusError."""
    try:
        obj = await create_object(api, _SNAPSHOTS, bench_object("Snapshot", "", {}))
    except NotFound:
        raise ValueError("snapshots of a server in another process need testing=True") from None
    return RemoteSnapshot((await obj.status())["revision"], {}, None, obj.name)


async def restore_remote(api: API, snapshot: RemoteSnapshot) -> None:
    """Restore a snapshot. Raises StatusError."""
    target = path_of(_SNAPSHOTS, snapshot.name)
    await request_json(api, "PATCH", target, _RESTORE, media="application/merge-patch+json")
