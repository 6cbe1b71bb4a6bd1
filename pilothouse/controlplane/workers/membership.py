"""A worker's view of its server: number, limits, and state shared between processes."""

from __future__ import annotations

import socket
from dataclasses import field, replace
from pathlib import Path

from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import READYZ, HealthCheck
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.shared_counters import shared_counters

WORKERS_CHECK = "workers"


@dataclass(frozen=True, slots=True)
class Membership:
    number: int
    board: Board
    folder: Path
    """Folder of the sockets on which workers answer each other."""
    store: socket.socket | None = field(default=None, repr=False)
    """Socket to the store process; None with etcd."""
    revisions: SharedRevisions = field(default_factory=SharedRevisions, repr=False)
    listener: socket.socket | None = field(default=None, repr=False)
    """Shared listening socket; None if each worker has its own."""

    @property
    def is_first(self) -> bool:
        """Whether this worker runs the singletons (controllers, compaction)."""
        return self.number == 1

    def others(self) -> list[Path]:
        """Return the sockets of the other workers."""
        return [self._socket(number) for number in range(1, self.board.workers + 1) if number != self.number]

    @property
    def own_socket(self) -> Path:
        return self._socket(self.number)

    def _socket(self, number: int) -> Path:
        return self.folder / f"{number}.sock"

    def check(self) -> HealthCheck:
        """Return the check that passes when all workers can serve, because a client cannot choose a worker."""

        async def probe() -> None:
            if waiting := self.board.unready():
                raise Unhealthy(f"not ready yet: worker {', '.join(map(str, waiting))}")

        return HealthCheck(WORKERS_CHECK, probe, endpoints=(READYZ,))

    def share_of(self, options: CompletedOptions, port: int) -> CompletedOptions:
        """Return the options of this worker: its share of the limits, and the common port."""
        generic, workers = options.generic, self.board.workers
        return replace(
            options,
            generic=replace(
                generic,
                max_requests_inflight=_divided(generic.max_requests_inflight, workers),
                max_mutating_requests_inflight=_divided(generic.max_mutating_requests_inflight, workers),
            ),
            secure_serving=replace(options.secure_serving, secure_port=port, permit_port_sharing=self.listener is None),
            insecure_serving=options.insecure_serving if self.is_first else replace(options.insecure_serving, port=0),
            controllers=options.controllers
            if self.is_first
            else replace(options.controllers, controllers=("-*",), scheduler=False),
            simulation=replace(options.simulation, runs_here=self.is_first),
        )


def _divided(limit: int, workers: int) -> int:
    """Divide and round up: 0 (no limit) stays 0, and every other share is at least 1."""
    return -(-limit // workers)


_RESTARTS = 0


class Board:
    """Counters in memory shared by all processes. Create the board before forking."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._words = shared_counters(1 + workers)

    @property
    def restarts(self) -> int:
        """Number of restarts of workers and of the store process."""
        return self._words[_RESTARTS]

    def count_restart(self) -> None:
        """Increment `restarts`. Only the supervisor may call this method."""
        self._words[_RESTARTS] += 1

    def set_ready(self, worker: int, ready: bool) -> None:
        self._words[worker] = ready

    def unready(self) -> list[int]:
        """Return the numbers of workers that cannot serve yet."""
        return [worker for worker in range(1, self.workers + 1) if not self._words[worker]]
