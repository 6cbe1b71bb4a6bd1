"""Metrics of a server with several processes: per-worker usage, restarts, and collection from other workers."""

from __future__ import annotations

import asyncio
import logging
import marshal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.server.metrics_endpoint import REGISTRIES
from pilothouse.apiserver.server.metrics_of_many import Families, families_of
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.controlplane.workers.membership import Board, Membership
from pilothouse.machinery.platform import resident_memory

_RESTARTS = "How often a worker, or the store's process with all workers, ended and was started again."
_PROCESSOR = "Processor time that each worker has taken."
_MEMORY = "Resident memory of each worker."


class _WorkerMetrics(Collector):
    def __init__(self, board: Board, number: int) -> None:
        self._board, self._labels = board, [str(number)]

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily("pilothouse_worker_restarts", _RESTARTS, value=self._board.restarts)
        processor = CounterMetricFamily("pilothouse_worker_cpu_seconds", _PROCESSOR, labels=["worker"])
        processor.add_metric(self._labels, time.process_time())
        yield processor
        memory = GaugeMetricFamily("pilothouse_worker_resident_memory_bytes", _MEMORY, labels=["worker"])
        if (resident := resident_memory()) is not None:
            memory.add_metric(self._labels, resident)
        yield memory


def count_worker(board: Board, number: int) -> None:
    """Register the metrics of this worker, and the restarts of all workers."""
    REGISTRY.register(_WorkerMetrics(board, number))


log = logging.getLogger(__name__)

_PATIENCE = 2.0


class WorkerPeers:
    """Collects metrics of other workers over sockets in a private folder. Workers that do not answer are skipped."""

    def __init__(self, member: Membership) -> None:
        self._member = member

    async def answer(self) -> None:
        """Answer requests of other workers until cancelled."""
        self._member.own_socket.unlink(missing_ok=True)  # left by a killed worker of this number
        server = await asyncio.start_unix_server(_answer, self._member.own_socket)
        self._member.own_socket.chmod(0o600)  # independent of the umask
        async with server:
            await server.serve_forever()

    async def families(self, name: str) -> list[Families]:
        answers = await asyncio.gather(*(_ask(path, name) for path in self._member.others()))
        return [answer for answer in answers if answer is not None]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        name = (await reader.readline()).decode().strip()
        if name in REGISTRIES:
            writer.write(await asyncio.to_thread(lambda: marshal.dumps(families_of(REGISTRIES[name]))))
        writer.close()
        await writer.wait_closed()


async def _ask(path: Path, name: str) -> Families | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(f"{name}\n".encode())
            answer = await reader.read()
            writer.close()
    except OSError as error:  # includes TimeoutError
        log.warning("the metrics of %s are missing: %s", path.stem, error)
        return None
    families: Families = marshal.loads(answer)
    return families
