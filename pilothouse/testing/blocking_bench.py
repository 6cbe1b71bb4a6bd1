"""The test bench for code without an event loop: each call waits for the coroutine of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.testing.api import BlockingAPI
    from pilothouse.testing.bench import BenchObject
    from pilothouse.testing.in_thread import LoopThread


@dataclass(frozen=True, slots=True)
class BlockingBenchObject:
    """As BenchObject."""

    loop: LoopThread
    behind: BenchObject

    def read(self) -> Json:
        return self.loop.run(self.behind.read())

    def status(self) -> Json:
        return self.loop.run(self.behind.status())

    def remove(self) -> None:
        self.loop.run(self.behind.remove())


@dataclass(frozen=True, slots=True)
class BlockingClock:
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
def fault_in_force(api: BlockingAPI, name: str, wishes: dict[str, Any]) -> Iterator[BlockingBenchObject]:
    fault = BlockingBenchObject(api.loop, api.loop.run(api.behind.faults.add(name, **wishes)))
    try:
        yield fault
    finally:
        fault.remove()
