"""The supervisor: starts the store process and the workers, and restarts ended processes.

The supervisor is the process that the user started. It serves no requests, and has neither threads nor an event loop,
so that it can fork at any time. When a worker ends, other workers continue. When the store process ends, all workers
are restarted, because they may have read state that was never durable.

On Linux each worker listens on its own socket of the port, and the kernel balances connections. On other systems all
workers accept from one socket.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pilothouse.apiserver.serving.server import ListenEndpoint, bind
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.controlplane import signals
from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.run import Announcement
from pilothouse.controlplane.workers.children import SIGNALS, Child, StatusPipe, ended, fork
from pilothouse.controlplane.workers.membership import Board, Membership
from pilothouse.controlplane.workers.processes import run_store, run_worker
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)

_HEALTHY = 10.0  # seconds of uptime after which a failure does not count as repeated
_FIRST_DELAY, _LAST_DELAY = 0.1, 5.0
_STORE = "store"


class Supervisor:
    def __init__(self, options: CompletedOptions, *, workers: int, listens: Listens, folder: Path) -> None:
        self._options, self._listens, self._folder = options, listens, folder
        self._board = Board(workers)
        self._revisions = SharedRevisions()
        self._status = StatusPipe()
        self._lifeline = os.pipe()  # children exit when the write end closes, which happens when the supervisor ends
        self._control: socket.socket | None = None
        self._children: dict[int, Child] = {}
        self._due: dict[str, float] = {}  # process name -> start time
        self._failures = 0
        self._ready_workers = 0
        self._is_up = False
        self._stopping = 0.0

    def run(self, ready: Callable[[Announcement], None]) -> None:
        """Run until all children have ended in order. Raises StartFailed."""
        with _Wakeups() as wakeups:
            if self._options.etcd.capabilities.local:
                self._start_store()
            for worker in range(1, self._board.workers + 1):
                self._start_worker(worker)
            while self._children or self._due:
                for number in wakeups.wait(
                    self._status, timeout=max(min(self._due.values()) - time.monotonic(), 0.0) if self._due else None
                ):
                    self._handle_signal(number)
                for message in self._status.heard():
                    if error := message.get("error"):
                        self._end(signal.SIGKILL)
                        raise StartFailed(error)
                    self._ready_workers += 1
                    if self._ready_workers == self._board.workers:
                        self._is_up = True
                        ready(Announcement(**message))
                self._reap()
                now = time.monotonic()
                for name in [name for name, due in self._due.items() if due <= now]:
                    del self._due[name]
                    if name == _STORE:
                        self._start_store()
                    else:
                        self._start_worker(_number(name))

    def _start_store(self) -> None:
        self._control, child_end = socket.socketpair()
        own_end = self._control

        def work() -> None:
            own_end.close()
            self._close_inherited()
            run_store(self._options, child_end, self._revisions, self._status)

        self._add(fork(_STORE, work))
        child_end.close()

    def _start_worker(self, number: int) -> None:
        worker_end, store_end = socket.socketpair()
        has_store = self._control is not None
        store = worker_end if has_store else None
        member = Membership(number, self._board, self._folder, store, self._revisions, self._listens.listener)

        def work() -> None:
            store_end.close()
            self._close_inherited()
            run_worker(self._options, member, self._listens.port, self._lifeline[0], self._status)

        if self._control is not None:
            socket.send_fds(self._control, [b"w"], [store_end.fileno()])
        self._add(fork(f"worker {number}", work))
        worker_end.close()
        store_end.close()

    def _close_inherited(self) -> None:
        """Close descriptors of the supervisor in a child."""
        os.close(self._lifeline[1])
        if self._control is not None:
            self._control.close()

    def _add(self, child: Child) -> None:
        self._children[child.pid] = child

    def _reap(self) -> None:
        dead = [(self._children.pop(pid), how) for pid, how in ended()]
        if self._stopping:
            self._stop_store_last()
            return
        for child, how in dead:
            if not self._is_up:
                self._end(signal.SIGKILL)
                raise StartFailed(f"{child.name} ended {how} before the server was ready")
            log.error("%s ended %s", child.name, how)
        if dead:
            self._schedule_restart([child for child, _ in dead])

    def _schedule_restart(self, dead: list[Child]) -> None:
        self._board.count_restart()
        self._failures = 0 if min(child.lived for child in dead) > _HEALTHY else self._failures + 1
        names = [child.name for child in dead]
        if _STORE in names:
            self._end(signal.SIGKILL)
            self._due.clear()  # a worker must not start before the store process
            names = [_STORE, *(f"worker {number}" for number in range(1, self._board.workers + 1))]
        due = time.monotonic() + (min(_FIRST_DELAY * 2**self._failures, _LAST_DELAY) if self._failures > 1 else 0.0)
        for name in names:
            log.info("starting %s again", name)
            self._due[name] = due
            if name != _STORE:
                self._board.set_ready(_number(name), False)

    def _handle_signal(self, number: int) -> None:
        if number not in (signal.SIGTERM, signal.SIGINT):
            return
        name = signal.Signals(number).name
        if self._stopping and time.monotonic() - self._stopping > signals.SAME_WISH:
            log.error(signals.second_signal_message(name))
            self._end(signal.SIGKILL)
            os._exit(signals.second_signal_exit_code(number))
        if not self._stopping:
            log.info(signals.first_signal_message(name))
            self._stopping = time.monotonic()
            self._due.clear()
            for child in self._children.values():
                if child.name != _STORE:
                    child.signal(signal.SIGTERM)
            self._stop_store_last()

    def _stop_store_last(self) -> None:
        """Stop the store process after the last worker, because workers finish writes during shutdown."""
        if self._control is not None and all(child.name == _STORE for child in self._children.values()):
            self._control.close()
            self._control = None

    def _end(self, number: signal.Signals) -> None:
        """Signal all children, and wait for their end."""
        for child in self._children.values():
            child.signal(number)
        for pid in self._children:
            os.waitpid(pid, 0)
        self._children.clear()
        if self._control is not None:
            self._control.close()
            self._control = None


def _number(name: str) -> int:
    return int(name.removeprefix("worker "))


class _Wakeups:
    """Signals as bytes on a socket, so that one select waits for signals and the status pipe. Signals are handled one
    at a time, between two waits."""

    def __enter__(self) -> _Wakeups:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._reading.close()
        self._writing.close()

    def wait(self, status: StatusPipe, *, timeout: float | None) -> bytes:
        """Wait, and return the numbers of received signals."""
        select.select([self._reading.fileno(), status.fileno()], [], [], timeout)
        try:
            return self._reading.recv(4096)
        except BlockingIOError:
            return b""


KERNEL_SHARES_OUT = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Listens:
    port: int
    listener: socket.socket | None = None
    """Socket shared by all workers; None if each worker has its own."""


@contextmanager
def listening(endpoint: ListenEndpoint) -> Iterator[Listens]:
    """Hold the port for the workers during the block. Raises OSError if the port is not available."""
    bound = bind(endpoint)
    if not KERNEL_SHARES_OUT:
        with bound:
            yield Listens(bound.getsockname()[1], bound)
        return
    with socket.socket(bound.family, socket.SOCK_STREAM) as held:
        address = bound.getsockname()
        bound.close()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(address)  # no listen(): the kernel would assign connections to this socket
        yield Listens(address[1])
