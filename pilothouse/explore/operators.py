"""Instances of the operator under test: start, kill without a farewell, and idleness.

A killed instance loses its memory and its connections at once; no write of a killed instance reaches the server.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import Any, Final, Protocol
from weakref import WeakSet

from pilothouse.bench.bench import Bench
from pilothouse.client.idleness import PROGRAMS, Workers, registered_workers
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import AsgiApp, AsgiResponse, AsgiTransport
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.controllers.table import ControllerDescriptor, enabled, unknown
from pilothouse.explore.scenario import Program, ScenarioError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.platform import NEW_PROCESS_GROUP, kill_process_group
from pilothouse.machinery.server_time import go_by

_CANCEL_TIMEOUT: Final = 10.0
_INSTANCE: ContextVar[InstanceTasks | None] = ContextVar("the instance of the operator that runs here", default=None)


@dataclass(frozen=True, slots=True)
class Access:
    """Access of an instance to its server."""

    user: str
    token: str
    kubeconfig: Path
    app: AsgiApp
    bench: Bench
    folder: Path
    """For the output of commands."""


class Instance(Protocol):
    """One running copy of the operator."""

    access: Access
    is_external: bool
    """Whether idleness is a matter of real time."""

    async def start(self) -> None:
        """Start, without waiting for readiness. Raises ScenarioError."""

    async def kill(self) -> None:
        """End at once. Idempotent."""

    def busy(self) -> str:
        """Return the reason why the instance is not idle; empty if idle."""

    def failure(self) -> str:
        """Return the reason of an unexpected end; empty while running or killed."""

    def output(self) -> str:
        """Return the last lines of the output."""


def new_instance(program: Program, access: Access) -> Instance:
    """Return an instance of the program, not started."""
    if program.manager:
        return ManagerInstance(program, access)
    if program.callable:
        return CallableInstance(program, access)
    if program.command:
        return CommandInstance(program, access)
    return ControllersInstance(program, access)


def load_function(path: str, directory: Path) -> Callable[..., Any]:
    """Import `module:function`, with the directory on the import path. Raises ScenarioError."""
    module, _, name = path.partition(":")
    with import_path(directory):
        try:
            return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
        except (ImportError, AttributeError) as error:
            raise ScenarioError(f"cannot load {path} from {directory}: {error}") from None


@contextmanager
def import_path(directory: Path) -> Iterator[None]:
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(str(directory))


class InstanceTasks:
    """Every task that an instance in this process has started."""

    def __init__(self) -> None:
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def add(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)

    def cancel(self) -> list[asyncio.Task[Any]]:
        live = [task for task in self._tasks if not task.done()]
        for task in live:
            task.cancel()
        return live


@contextmanager
def tracked_tasks() -> Iterator[None]:
    """Track the tasks of all instances of this event loop for the duration of the block."""
    loop = asyncio.get_running_loop()
    previous = loop.get_task_factory()

    def create(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        task = asyncio.Task(coro, loop=loop, **options) if previous is None else previous(loop, coro, **options)
        context: Context | None = options.get("context")
        instance = _INSTANCE.get() if context is None else context.get(_INSTANCE)
        if instance is not None:
            instance.add(task)  # type: ignore[arg-type]
        return task

    loop.set_task_factory(create)
    try:
        yield
    finally:
        loop.set_task_factory(previous)


class KillableTransport(AsgiTransport):
    """Calls the server in this process. The server's tasks run in the server's context and survive a kill."""

    def __init__(self, access: Access) -> None:
        super().__init__(access.app, headers={"authorization": f"Bearer {access.token}"})
        self._context = copy_context()
        self._open: WeakSet[AsgiResponse] = WeakSet()
        self.dead = False

    def _call(self, request: HttpRequest) -> AsgiResponse:
        if self.dead:
            raise ConnectionFailed("the operator was killed")
        exchange = self._context.copy().run(super()._call, request)
        self._open.add(exchange)
        return exchange

    async def cut(self) -> None:
        """Refuse further requests and drop open ones."""
        self.dead = True
        for exchange in [*self._open]:
            await exchange.close()


class InProcessInstance:
    """A program in this event loop, by the server's virtual clock. Subclasses start their work in `_begin`."""

    is_external = False

    def __init__(self, program: Program, access: Access) -> None:
        self.access = access
        self._program = program
        self._transport = KillableTransport(access)
        self._tasks = InstanceTasks()
        self._workers: Workers | None = None
        self._first: asyncio.Task[Any] | None = None
        """The task of `_begin`."""
        self._killed = False

    async def start(self) -> None:
        context = copy_context()
        self._first = context.run(self._start_in_context, context)

    def _start_in_context(self, context: Context) -> asyncio.Task[Any]:
        _INSTANCE.set(self._tasks)
        go_by(self.access.bench.time)
        self._workers = registered_workers()
        work = self._begin(Client(self._transport, user_agent=self.access.user))
        return asyncio.get_running_loop().create_task(work, context=context)

    def _begin(self, client: Client) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    async def kill(self) -> None:
        if self._killed:
            return
        self._killed = True
        tasks = self._tasks.cancel()
        await self._transport.cut()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT)

    def busy(self) -> str:
        return ", ".join(self._workers.busy(0.0)) if self._workers is not None and not self._killed else ""

    def failure(self) -> str:
        task = self._first
        if self._killed or task is None or not task.done() or task.cancelled() or task.exception() is None:
            return ""
        return repr(task.exception())

    def output(self) -> str:
        return ""


class ManagerInstance(InProcessInstance):
    """A `pilothouse.operator.Manager`."""

    _manager: Any = None

    def _begin(self, client: Client) -> Coroutine[Any, Any, None]:
        self._manager = load_function(self._program.manager, self._program.directory)(client)
        work: Coroutine[Any, Any, None] = self._manager.start()
        return work

    async def kill(self) -> None:
        await super().kill()
        if self._manager is not None:
            PROGRAMS.remove(self._manager)
            self._manager = None

    def busy(self) -> str:
        if self._manager is None or self._first is None:
            return ""
        if not self._first.done() or self._manager.is_busy(0.0):
            return self._manager.name or "the operator"
        return super().busy()

    def failure(self) -> str:
        running = getattr(self._manager, "_running", None)
        if running is not None and running.done() and not running.cancelled() and running.exception() is not None:
            return "" if self._killed else repr(running.exception())
        return super().failure()


class ControllersInstance(InProcessInstance):
    """Controllers of the server, by `pilothouse.controllers.manager`; the server itself runs without them."""

    def _begin(self, client: Client) -> Coroutine[Any, Any, None]:
        from prometheus_client import CollectorRegistry

        from pilothouse.controllers.manager import ControllerManager

        chosen = explored_controllers(self._program)
        return ControllerManager(client, chosen, registry=CollectorRegistry()).run()


def explored_controllers(program: Program) -> list[ControllerDescriptor]:
    """Return the controllers of the program. Raises ScenarioError for unknown names."""
    if names := [*unknown(program.controllers)]:
        raise ScenarioError(f"operator.controllers: unknown controllers {', '.join(names)}")
    return enabled(program.controllers, has_feature=lambda name: True)


class CallableInstance:
    """A coroutine function in this event loop, with its own connections and the real clock."""

    is_external = True

    def __init__(self, program: Program, access: Access) -> None:
        self.access = access
        self._program = program
        self._tasks = InstanceTasks()
        self._task: asyncio.Task[Any] | None = None
        self._killed = False

    async def start(self) -> None:
        function = load_function(self._program.callable, self._program.directory)
        context = copy_context()
        context.run(_INSTANCE.set, self._tasks)
        coroutine = context.run(function, self.access.kubeconfig)
        self._task = asyncio.get_running_loop().create_task(coroutine, context=context)

    async def kill(self) -> None:
        if self._killed:
            return
        self._killed = True
        self.access.bench.close_connections([self.access.user])
        tasks = self._tasks.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT)

    def busy(self) -> str:
        return ""

    def failure(self) -> str:
        if self._killed or self._task is None or not self._task.done() or self._task.cancelled():
            return ""
        return repr(self._task.exception()) if self._task.exception() is not None else "the operator returned"

    def output(self) -> str:
        return ""


class CommandInstance:
    """A program in its own process group, killed by SIGKILL."""

    is_external = True

    def __init__(self, program: Program, access: Access) -> None:
        self.access = access
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._log = access.folder / f"output-{time.monotonic_ns()}.log"
        self._killed = False
        self._cpu = -1

    async def start(self) -> None:
        program = self._program
        values = {"kubeconfig": str(self.access.kubeconfig), "python": sys.executable}
        command = [_filled(word, values) for word in program.command]
        if command[0] in ("python", "python3"):
            command[0] = sys.executable
        env = {**os.environ, **program.env, "KUBECONFIG": str(self.access.kubeconfig), "PYTHONUNBUFFERED": "1"}
        with self._log.open("wb") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *command, cwd=program.directory, env=env, stdout=log, stderr=log, **NEW_PROCESS_GROUP
                )
            except OSError as error:
                raise ScenarioError(f"cannot start {command[0]}: {error}") from None

    async def kill(self) -> None:
        if self._killed or self._process is None:
            return
        self._killed = True
        with suppress(ProcessLookupError, PermissionError):
            kill_process_group(self._process)
        await self._process.wait()
        self.access.bench.close_connections([self.access.user])

    def busy(self) -> str:
        """Whether a thread of the process group runs or waits for a processor, or has used CPU time since the last
        call. A starved process is busy, so that a loaded machine does not look idle.
        """
        if self._process is None or self._process.returncode is not None or self._killed:
            return ""
        running, cpu = _processor_use(self._process.pid)
        before, self._cpu = self._cpu, cpu
        return f"process {self._process.pid}" if running or cpu != before else ""

    def failure(self) -> str:
        if self._killed or self._process is None or self._process.returncode is None:
            return ""
        return f"the operator ended with code {self._process.returncode}"

    def output(self) -> str:
        with suppress(OSError):
            return self._log.read_bytes()[-4000:].decode("utf-8", "replace")
        return ""


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


def _processor_use(leader: int) -> tuple[bool, int]:
    """Return whether a thread of the process or of its descendants is runnable, and their CPU ticks. Linux only;
    elsewhere the processes count as sleeping.
    """
    running, ticks, pids = False, 0, [leader]
    while pids:
        folder = Path("/proc") / str(pids.pop())
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            for thread in (folder / "task").iterdir():
                running = running or (thread / "stat").read_text().rpartition(")")[2].split()[0] in ("R", "D")
                pids += map(int, (thread / "children").read_text().split())
    return running, ticks
