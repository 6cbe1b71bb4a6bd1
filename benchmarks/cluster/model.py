"""What a larger cluster would take, from those that were measured.

Processor time a second = base + nodes × node + churn × pod. It is made from what was done, and not from what was
wanted: a machine that is busy does less in the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Row = tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    nodes: int
    seconds: float
    node_seconds: float
    """For how long how many nodes renewed their leases."""
    pods: int
    processor: float


@dataclass(frozen=True)
class Model:
    base: float
    node: float
    pod: float
    """Seconds of processor time: each second, each second for each node, and for each pod that comes and goes."""

    @classmethod
    def fit(cls, points: Sequence[Measured]) -> Model:
        """By least squares of relative errors, so that small clusters count as much as large ones."""
        rows = [tuple(value / p.processor for value in (p.seconds, p.node_seconds, p.pods)) for p in points]
        return cls(*_least_squares(rows, [1.0] * len(rows)))

    def cores(self, nodes: float, churn: float) -> float:
        return self.base + self.node * nodes + self.pod * churn

    def error(self, point: Measured) -> float:
        """The share by which it is off."""
        said = self.base * point.seconds + self.node * point.node_seconds + self.pod * point.pods
        return said / point.processor - 1


def error_on_largest(points: Sequence[Measured]) -> float | None:
    """How far a model of all smaller steps is off for the largest, as a share; None where there are too few."""
    largest = max(point.nodes for point in points)
    smaller = [point for point in points if point.nodes < largest]
    if len({point.nodes for point in smaller}) < 2:
        return None
    model = Model.fit(smaller)
    return max(abs(model.error(point)) for point in points if point.nodes == largest)


def _least_squares(rows: Sequence[Row], values: Sequence[float]) -> list[float]:
    """The normal equations, by Gauss."""
    width = len(rows[0])
    matrix = [
        [sum(row[i] * row[j] for row in rows) for j in range(width)]
        + [sum(row[i] * value for row, value in zip(rows, values, strict=True))]
        for i in range(width)
    ]
    for i in range(width):
        pivot = max(range(i, width), key=lambda each: abs(matrix[each][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for j in range(width):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    return [matrix[i][width] / matrix[i][i] for i in range(width)]
