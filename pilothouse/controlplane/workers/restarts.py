"""How often processes of the server had to be started again, as a metric."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.controlplane.workers.board import Board

_NAME = "pilothouse_worker_restarts"
_HELP = "How often a worker, or the store's process with all workers, ended and was started again."


class _Restarts(Collector):
    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(_NAME, _HELP, value=self._board.restarts)


def count_restarts(board: Board) -> None:
    REGISTRY.register(_Restarts(board))
