"""Metrics of the processes of a server: what each takes, and how often one had to be started again."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.controlplane.workers.board import Board
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
    """Show the worker of this number, which is this process, and the restarts of all."""
    REGISTRY.register(_WorkerMetrics(board, number))
