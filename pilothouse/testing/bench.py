"""The test bench of a server with `testing=True`, for code in an event loop: sugar over testing.pilothouse.dev."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.objects import Json, name_of
from pilothouse.testing.bench_objects import fault_object, path_of

if TYPE_CHECKING:
    from pilothouse.testing.api import API


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
        """Raises StatusError."""
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
