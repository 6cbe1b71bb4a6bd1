"""The test bench of a server with `testing=True`, for code without an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.testing.bench import BenchObject, bench_object, create_object

if TYPE_CHECKING:
    from pilothouse.testing.api import BlockingAPI


@dataclass(frozen=True, slots=True)
class BlockingBenchObject:
    """Blocking form of BenchObject."""

    api: BlockingAPI
    behind: BenchObject

    @property
    def name(self) -> str:
        return self.behind.name

    def read(self) -> Json:
        return self.api.loop.run(self.behind.read())

    def status(self) -> Json:
        return self.api.loop.run(self.behind.status())

    def remove(self) -> None:
        self.api.loop.run(self.behind.remove())


@dataclass(frozen=True, slots=True)
class BlockingFaults:
    """Blocking form of Faults."""

    api: BlockingAPI

    def add(self, name: str = "", **wishes: Any) -> BlockingBenchObject:
        return BlockingBenchObject(self.api, self.api.loop.run(self.api.behind.faults.add(name, **wishes)))


def recorded(api: BlockingAPI, name: str, spec: Json) -> BlockingBenchObject:
    """Create a Recording."""
    creation = create_object(api.behind, "recordings", bench_object("Recording", name, spec))
    return BlockingBenchObject(api, api.loop.run(creation))


@dataclass(frozen=True, slots=True)
class BlockingServerClock:
    """Blocking form of ServerClock."""

    api: BlockingAPI

    def step(self, duration: str) -> None:
        self.api.loop.run(self.api.behind.clock.step(duration))

    def set(self, moment: datetime | str) -> None:
        self.api.loop.run(self.api.behind.clock.set(moment))

    def stop(self) -> None:
        self.api.loop.run(self.api.behind.clock.stop())

    def run(self, speed: float = 1.0) -> None:
        self.api.loop.run(self.api.behind.clock.run(speed))

    def now(self) -> datetime:
        return self.api.loop.run(self.api.behind.clock.now())


@contextmanager
def removed_at_exit(obj: BlockingBenchObject) -> Iterator[BlockingBenchObject]:
    """Remove the object at the end of the block."""
    try:
        yield obj
    finally:
        obj.remove()
