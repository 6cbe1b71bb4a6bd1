"""What a larger cluster would take, from those that were measured.

processor time a second = base + nodes × node + churn × pod
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Row = tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    nodes: float
    churn: float
    cores: float


@dataclass(frozen=True)
class Model:
    base: float
    node: float
    pod: float
    """Seconds of processor time: each second, each second for each node, and for each pod that comes and goes."""

    @classmethod
    def fit(cls, points: Sequence[Measured]) -> Model:
        """By least squares of relative errors, so that small clusters count as much as large ones."""
        rows = [tuple(value / p.cores for value in (1.0, p.nodes, p.churn)) for p in points]
        return cls(*_least_squares(rows, [1.0] * len(rows)))

    def cores(self, nodes: float, churn: float) -> float:
        return self.base + self.node * nodes + self.pod * churn


def error_on_largest(points: Sequence[Measured]) -> float | None:
    """How far a model of all smaller steps is off for the largest, as a share; None where there are too few."""
    largest = max(point.nodes for point in points)
    smaller = [point for point in points if point.nodes < largest]
    if len({point.nodes for point in smaller}) < 2:
        return None
    model = Model.fit(smaller)
    left_out = [point for point in points if point.nodes == largest]
    return max(abs(model.cores(p.nodes, p.churn) / p.cores - 1) for p in left_out)


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
