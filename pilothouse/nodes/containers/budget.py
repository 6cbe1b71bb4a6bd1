"""Budgets of simulated processes, and the machine that all simulated processes share.

Simulated processes share the event loop with the API. Work is charged to the budget of its process in advance:

    async with machine.process() as budget:
        await budget.spend(data=len(text))     # before work on so many bytes; yields the processor in time
        budget.hold(len(text))                 # before keeping so many bytes
        data = await budget.outside(read())    # waits without occupying the processor

A process that exceeds its budget ends with Killed, the counterpart of SIGKILL. Each operation between two calls of
`spend` works on at most PIECE bytes, or copies at most Limits.held bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from enum import Enum
from types import TracebackType
from typing import Final, TypeVar

from pilothouse.machinery.dataclass import dataclass

T = TypeVar("T")

KILLED: Final = 137
"""Exit code after SIGKILL."""
PIECE: Final = 64 * 1024
TOTAL_MEMORY: Final = 128 << 20
_STEP: Final = 4096
"""Bytes of work per step."""
_SLICE: Final = 0.005
_REST: Final = 1.0
"""Seconds reserved for the event loop after each second of simulated processes."""


class Cause(Enum):
    MEMORY = "memory"
    WORK = "work"
    """Too many steps or written bytes."""
    TIME = "time"
    """Too many seconds of the processor, or too long a run; steps are counted so that they run out first."""
    END = "end"
    """The container of the process has ended."""


class Killed(Exception):
    """The process was ended with SIGKILL."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a process including its children."""

    steps: int = 100_000
    """Commands, plus 4 KiB units of processed data."""
    held: int = 32 << 20
    """Maximum bytes held in variables, words, pipes and input."""
    written: int = 256 << 20
    processor_seconds: float = 2.0
    wall_seconds: float = 4 * 3600.0


class Machine:
    """A single processor, shared in turns, and the memory of all processes.

    A turn lasts about 5 ms, followed by an equal pause for the event loop. When memory is exhausted, the process with
    the largest share is killed.
    """

    _waiting: deque[asyncio.Future[None]]  # in turn order; cancelled futures are skipped

    def __init__(self, memory: int = TOTAL_MEMORY) -> None:
        self._free_memory = memory
        self._processes: set[Budget] = set()
        self._waiting = deque()
        self._is_taken = False
        self._began = self._free_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def processes(self) -> int:
        return len(self._processes)

    def process(self, limits: Limits | None = None) -> Budget:
        """Return the budget of a new process, a context manager around its work that raises Killed."""
        return Budget(self, limits or Limits())

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Run short work without a process, in turn with the processes."""
        await self.take_turn()
        try:
            yield
        finally:
            self.end_turn()

    async def take_turn(self) -> None:
        """Wait for the processor. `end_turn` must follow."""
        loop = asyncio.get_running_loop()
        if self._is_taken or self._waiting or loop.time() < self._free_at:
            granted: asyncio.Future[None] = loop.create_future()
            self._waiting.append(granted)
            self._plan(loop)
            try:
                await granted
            except asyncio.CancelledError:
                if not granted.cancelled():  # the turn was granted at the same moment
                    self._began = time.thread_time()
                    self.end_turn()
                raise
        self._is_taken, self._began = True, time.thread_time()

    def end_turn(self) -> float:
        """Release the processor, and return the seconds used."""
        loop, used = asyncio.get_running_loop(), time.thread_time() - self._began
        self._is_taken = False
        self._free_at = loop.time() + used * _REST
        self._plan(loop)
        return used

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and not self._is_taken and self._timer is None:
            self._timer = loop.call_at(max(self._free_at, loop.time()), self._grant)

    def _grant(self) -> None:
        self._timer = None
        while self._waiting and not self._is_taken:
            granted = self._waiting.popleft()
            if not granted.done():
                self._is_taken = True
                granted.set_result(None)

    def enter(self, process: Budget) -> None:
        self._processes.add(process)

    def leave(self, process: Budget) -> None:
        self._processes.discard(process)
        self._free_memory += process.held

    def allocate(self, process: Budget, size: int) -> None:
        """Allocate memory to the process; negative sizes release. Raises Killed if the process has the largest
        share."""
        while size > self._free_memory:
            largest = max(self._processes, key=lambda each: each.held + (size if each is process else 0))
            if largest is process:
                raise Killed(Cause.MEMORY)
            largest.kill(Cause.MEMORY)
        self._free_memory -= size


class Budget:
    """Resources used by a process. Held bytes are released when the process ends."""

    def __init__(self, machine: Machine, limits: Limits) -> None:
        self._machine, self._limits = machine, limits
        self.steps = self.held = self.written = 0
        self.processor_seconds = 0.0
        self._turn: float | None = None  # start of the current turn; None outside of a turn
        self._cause: Cause | None = None  # cause of an external kill
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0  # cancellation requests unrelated to this process
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Budget:
        self._task = task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._limits.wall_seconds, self.kill, Cause.TIME)
        self._machine.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        assert self._timer is not None
        self._end_turn()
        self._timer.cancel()
        self._machine.leave(self)
        is_ours = self._cause is not None and task.uncancel() <= self._cancelling
        if self._cause is not None and is_ours and kind is asyncio.CancelledError:
            raise Killed(self._cause) from None

    def kill(self, cause: Cause) -> None:
        """Kill the process from outside: the context manager raises Killed."""
        if self._cause is None and self._task is not None:
            self._cause = cause
            self._machine.leave(self)
            self.held = 0
            self._task.cancel()

    async def spend(self, data: int = 0, *, steps: int = 1) -> None:
        """Charge steps and the bytes they process, in advance. Raises Killed."""
        self.steps += steps + data // _STEP
        if self.steps > self._limits.steps:
            self.steps = self._limits.steps
            raise Killed(Cause.WORK)
        if self._turn is not None and asyncio.get_running_loop().time() - self._turn >= _SLICE:
            self._end_turn()
        if self._turn is None:
            if self.processor_seconds >= self._limits.processor_seconds:
                raise Killed(Cause.TIME)
            await self._machine.take_turn()
            self._turn = asyncio.get_running_loop().time()

    def hold(self, size: int) -> None:
        """Charge bytes about to be kept; negative sizes release. Raises Killed."""
        if self._cause is None:
            if self.held + size > self._limits.held:
                raise Killed(Cause.MEMORY)
            self._machine.allocate(self, size)
            self.held += size

    def write(self, size: int) -> None:
        """Charge bytes about to be written. Raises Killed."""
        if self.written + size > self._limits.written:
            raise Killed(Cause.WORK)
        self.written += size

    async def outside(self, others: Awaitable[T]) -> T:
        """Await external work without holding the processor."""
        self._end_turn()
        return await others

    def _end_turn(self) -> None:
        if self._turn is not None:
            self.processor_seconds += self._machine.end_turn()
            self._turn = None


class Holding:
    """Held bytes of a process that are released together: a context manager."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._size = 0

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def add(self, size: int) -> None:
        """Hold further bytes. Raises Killed."""
        self._budget.hold(size)
        self._size += size

    def release(self) -> None:
        self._budget.hold(-self._size)
        self._size = 0


def memory_of(text: str) -> int:
    """Return the memory size of a text in bytes."""
    return len(text) if text.isascii() else 4 * len(text)
