"""The test bench of a server with `testing=True`, for code without an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.testing.bench import BenchObject, written
from pilothouse.testing.bench_objects import bench_object

if TYPE_CHECKING:
    from pilothouse.testing.api import BlockingAPI


@dataclass(frozen=True, slots=True)
class BlockingBenchObject:
    """As BenchObject."""

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
    """As Faults."""

    api: BlockingAPI

    def add(self, name: str = "", **wishes: Any) -> BlockingBenchObject:
        return BlockingBenchObject(self.api, self.api.loop.run(self.api.behind.faults.add(name, **wishes)))


def recorded(api: BlockingAPI, name: str, spec: Json) -> BlockingBenchObject:
    """Begin to record."""
    made = written(api.behind, "recordings", bench_object("Recording", name, spec))
    return BlockingBenchObject(api, api.loop.run(made))


@dataclass(frozen=True, slots=True)
class BlockingServerClock:
    """As ServerClock."""

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
def there(found: BlockingBenchObject) -> Iterator[BlockingBenchObject]:
    """Have the object be there for as long as the block lasts."""
    try:
        yield found
    finally:
        found.remove()
