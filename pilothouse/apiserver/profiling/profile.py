"""Profiles: values by stack, encoded as pprof's gzipped protobuf or as text; and the stacks of threads and tasks."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import chain
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.protobuf.wire import BYTES, VARINT, delimited, tag, varint


class Frame(NamedTuple):
    function: str
    file: str
    line: int


Stack: TypeAlias = tuple[Frame, ...]
"""Innermost frame first."""
Kind: TypeAlias = tuple[str, str]
"""Type and unit of a value: `("cpu", "nanoseconds")`."""
Values: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """`kinds` describe the values of each stack; `period` is the sampling interval in the unit of `period_kind`."""

    kinds: tuple[Kind, ...]
    samples: Mapping[Stack, Values]
    period_kind: Kind
    period: int
    time_ns: int
    duration_ns: int = 0

    def since(self, before: Profile) -> Profile:
        """Return the difference to an earlier profile of the same kinds."""
        nothing = (0,) * len(self.kinds)
        changes: dict[Stack, Values] = {}
        for stack in self.samples.keys() | before.samples.keys():
            now, then = self.samples.get(stack, nothing), before.samples.get(stack, nothing)
            changes[stack] = tuple(new - old for new, old in zip(now, then, strict=True))
        changed = {stack: values for stack, values in changes.items() if any(values)}
        duration = self.time_ns - before.time_ns
        return Profile(self.kinds, changed, self.period_kind, self.period, before.time_ns, duration)

    def text(self, name: str) -> str:
        """Return the legacy text form: stacks with their frames, most frequent first."""
        lines = [f"{name} profile: total {sum(values[0] for values in self.samples.values())}"]
        numbers: dict[Frame, int] = {}
        for stack, values in sorted(self.samples.items(), key=lambda sample: (-sample[1][0], sample[0])):
            places = [f"{numbers.setdefault(frame, len(numbers) + 1):#x}" for frame in stack]
            lines.append(" ".join([": ".join(map(str, values)), "@", *places]))
            named = zip(places, stack, strict=True)
            lines.extend(f"#\t{place}\t{frame.function}\t{frame.file}:{frame.line}" for place, frame in named)
            lines.append("")
        return "\n".join(lines) + "\n"

    def encode(self) -> bytes:
        """Gzipped protobuf of github.com/google/pprof's Profile."""
        return gzip.compress(_Encoder().encode(self), 6)


class _Encoder:
    """Writes each string, function and location once; ids are assigned in order of first use."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._places: dict[Frame, int] = {}

    def encode(self, profile: Profile) -> bytes:
        kinds = [self._message(1, self._kind(kind)) for kind in profile.kinds]
        samples = [self._message(2, self._sample(stack, values)) for stack, values in profile.samples.items()]
        period = self._message(11, self._kind(profile.period_kind)) + _number(12, profile.period)
        times = _number(9, profile.time_ns) + _number(10, profile.duration_ns)
        places = [self._message(4, self._place(frame)) for frame in self._places]
        functions = [self._message(5, self._function(*function)) for function in self._functions]
        strings = [self._message(6, text.encode("utf-8", "replace")) for text in self._strings]
        return b"".join(chain(kinds, samples, places, functions, strings, (times, period)))

    @staticmethod
    def _message(number: int, body: bytes) -> bytes:
        return delimited(tag(number, BYTES), body)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _kind(self, kind: Kind) -> bytes:
        return _number(1, self._string(kind[0])) + _number(2, self._string(kind[1]))

    def _sample(self, stack: Stack, values: Values) -> bytes:
        places = b"".join(varint(self._places.setdefault(frame, len(self._places) + 1)) for frame in stack)
        return self._message(1, places) + self._message(2, b"".join(map(varint, values)))

    def _place(self, frame: Frame) -> bytes:
        key = (frame.function, frame.file)
        function = self._functions.setdefault(key, len(self._functions) + 1)
        line = _number(1, function) + _number(2, frame.line)
        return _number(1, self._places[frame]) + self._message(4, line)

    def _function(self, name: str, file: str) -> bytes:
        names = _number(2, self._string(name)) + _number(3, self._string(name)) + _number(4, self._string(file))
        return _number(1, self._functions[name, file]) + names


def _number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value) if value else b""


_MAX_DEPTH = 64
_TASKS_AT_ONCE = 200
"""Number of tasks between two yields to the event loop."""


def thread_stacks() -> Iterator[tuple[threading.Thread, Stack]]:
    """Yield every thread except the calling thread, with its current stack."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident in threads and ident != threading.get_ident():
            yield threads[ident], stack_of(frame)


async def task_stacks() -> AsyncIterator[tuple[asyncio.Task[Any], Stack]]:
    """Yield every task of this loop, with the chain of awaited coroutines."""
    for number, task in enumerate(asyncio.all_tasks()):
        if number % _TASKS_AT_ONCE == _TASKS_AT_ONCE - 1:
            await yield_to_loop()
        yield task, tuple(_awaited(task.get_coro()))[::-1]


def stack_of(frame: FrameType | None) -> Stack:
    found: list[Frame] = []
    while frame is not None and len(found) < _MAX_DEPTH:
        found.append(_frame(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def _awaited(coroutine: Any) -> Iterator[Frame]:
    """Yield frames, outermost first. The chain ends at a future or a C object without a frame."""
    for _ in range(_MAX_DEPTH):
        kind = "cr" if hasattr(coroutine, "cr_frame") else "ag" if hasattr(coroutine, "ag_frame") else "gi"
        frame = getattr(coroutine, f"{kind}_frame", None)
        if frame is None:
            return
        yield _frame(frame.f_code, frame.f_lineno)
        coroutine = getattr(coroutine, f"{kind}_{'yieldfrom' if kind == 'gi' else 'await'}")


def _frame(code: CodeType, line: int | None) -> Frame:
    return Frame(code.co_qualname, code.co_filename, line or code.co_firstlineno)
