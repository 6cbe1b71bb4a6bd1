"""The test bench of a server with `testing=True`, for code in an event loop: sugar over testing.pilothouse.dev."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.times import format_time, parse_time
from pilothouse.testing.bench_objects import bench_object, fault_object, path_of

if TYPE_CHECKING:
    from pilothouse.testing.api import API

MERGE_PATCH: Final = "application/merge-patch+json"
_LOOK_EVERY: Final = 0.02


@dataclass(frozen=True, slots=True)
class BenchObject:
    """One object of the bench that was written."""

    api: API
    plural: str
    name: str

    async def read(self) -> Json:
        """Return the object as it is now. Raises StatusError."""
        return await asked(self.api, "GET", path_of(self.plural, self.name))

    async def status(self) -> Json:
        """Return its status, empty where there is none yet. Raises StatusError."""
        status: Json = (await self.read()).get("status") or {}
        return status

    async def remove(self) -> None:
        """Have it be gone, if it is not yet. Raises StatusError."""
        with suppress(NotFound):
            await asked(self.api, "DELETE", path_of(self.plural, self.name))


@dataclass(frozen=True, slots=True)
class Faults:
    """What the server is to do wrong."""

    api: API

    async def add(self, name: str = "", **wishes: Any) -> BenchObject:
        """Have the server misbehave from now on. Raises StatusError, and TypeError for words that a Fault lacks.

        await api.faults.add(verbs=["create"], resources=["pods"], times=1, answer=503)
        """
        return await written(self.api, "faults", fault_object(name, wishes))


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The server's own time. Each method returns when it is that time, and what was due has had its turn."""

    api: API

    async def step(self, duration: str) -> None:
        """Let so much time pass at once: `await api.clock.step("5m")`. Raises StatusError."""
        await self._change({"step": duration})

    async def set(self, moment: datetime | str) -> None:
        """Make it that time. Raises StatusError."""
        await self._change({"time": moment if isinstance(moment, str) else format_time(moment)})

    async def stop(self) -> None:
        """Let no time pass but by steps. Raises StatusError."""
        await self._change({"stopped": True})

    async def run(self, speed: float = 1.0) -> None:
        """Let time pass again, perhaps faster. Raises StatusError."""
        await self._change({"stopped": False, "speed": speed})

    async def now(self) -> datetime:
        """Return what time it is to the server, in whole seconds. Raises StatusError."""
        found = await asked(self.api, "GET", path_of("clocks", "server"))
        moment = parse_time(found["status"]["time"])
        assert moment is not None
        return moment

    async def _change(self, spec: Json) -> None:
        await asked(self.api, "PATCH", path_of("clocks", "server"), {"spec": spec}, media=MERGE_PATCH)


@asynccontextmanager
async def recorded(api: API, name: str, spec: Json) -> AsyncIterator[BenchObject]:
    recording = await written(api, "recordings", bench_object("Recording", name, spec))
    try:
        yield recording
    finally:
        await recording.remove()


async def clear(api: API) -> None:
    """Take all faults and recordings away, and have the clock run as the machine's. Raises StatusError."""
    for plural in ("faults", "recordings", "settleds"):
        await asked(api, "DELETE", path_of(plural))
    clock = await asked(api, "GET", path_of("clocks", "server"))
    if clock.get("spec") or clock["status"]["ahead"] != "0s":
        machines = format_time(datetime.now(UTC))
        spec = {"stopped": None, "speed": None, "time": machines}
        await asked(api, "PATCH", path_of("clocks", "server"), {"spec": spec}, media=MERGE_PATCH)


async def settle(api: API, timeout: float) -> None:
    """Return when the server has come to rest. Raises TimeoutError with who still works, StatusError."""
    wish = bench_object("Settled", "", {"timeout": f"{int(timeout * 1000)}ms"})
    settled = await written(api, "settleds", wish)
    try:
        while not (status := await settled.status()):  # noqa: ASYNC110  # a watch would be another request to open
            await asyncio.sleep(_LOOK_EVERY)
    finally:
        await settled.remove()
    if not status["settled"]:
        raise TimeoutError(f"the server has not come to rest within {timeout} s: {', '.join(status['waitingFor'])}")


@asynccontextmanager
async def fault_in_force(api: API, name: str, wishes: dict[str, Any]) -> AsyncIterator[BenchObject]:
    fault = await Faults(api).add(name, **wishes)
    try:
        yield fault
    finally:
        await fault.remove()


async def written(api: API, plural: str, obj: Json) -> BenchObject:
    """Create the object. Raises StatusError."""
    return BenchObject(api, plural, name_of(await asked(api, "POST", path_of(plural), obj)))


async def asked(api: API, method: str, path: str, body: Json | None = None, *, media: str = "application/json") -> Json:
    """Return the answer. Raises StatusError where it is none of success."""
    answer = await api.request(method, path, body, media=media)
    if answer.status >= 400:
        raise from_status(answer.json, http_code=answer.status)
    found: Json = answer.json
    return found
