"""What a server's process holds, sampled over time: as a table, as growth, and as a plot in SVG."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression, median

from servers.processes import memory


@dataclass(frozen=True)
class Sample:
    """Moment in seconds since the first one, and what there was then."""

    at: float
    megabytes: float
    descriptors: int
    threads: int
    tasks: int
    operations: int
    """All that clients had done until then."""


FIGURES: dict[str, Callable[[Sample], float]] = {
    "memory (MB)": lambda sample: sample.megabytes,
    "file descriptors": lambda sample: sample.descriptors,
    "threads": lambda sample: sample.threads,
    "tasks": lambda sample: sample.tasks,
}


class Sampler:
    def __init__(self, pid: int) -> None:
        self._process = Path(f"/proc/{pid}")
        self._pid = pid
        self._began = time.monotonic()
        self.samples: list[Sample] = []

    def take(self, *, tasks: int, operations: int) -> Sample:
        """`tasks` are those of the event loop, as the server counts them."""
        threads = len(list(self._process.joinpath("task").iterdir()))
        descriptors = len(list(self._process.joinpath("fd").iterdir()))
        at = time.monotonic() - self._began
        self.samples.append(Sample(at, memory(self._pid), descriptors, threads, tasks, operations))
        return self.samples[-1]


def growth(samples: Sequence[Sample]) -> str:
    """Tell how the second half differs from the first: caches fill in the first, and what goes on growing is a leak."""
    half = samples[len(samples) // 2 :]
    lines = ["| | first quarter | last quarter | trend of the second half, per hour |", "|---|---|---|---|"]
    quarter = max(1, len(samples) // 4)
    for name, figure in FIGURES.items():
        slope = linear_regression([each.at / 3600 for each in half], [figure(each) for each in half]).slope
        first, last = median(map(figure, samples[:quarter])), median(map(figure, samples[-quarter:]))
        lines.append(f"| {name} | {first:,.0f} | {last:,.0f} | {slope:+,.0f} |")
    return "\n".join(lines)


WIDTH, HEIGHT, LEFT, GAP = 800, 120, 60, 50


def plot(samples: Sequence[Sample]) -> str:
    """Return one line for each figure, below each other, over the minutes of the run."""
    parts = [_panel(number, name, samples, figure) for number, (name, figure) in enumerate(FIGURES.items())]
    height = len(FIGURES) * (HEIGHT + GAP) + GAP
    style = "text { font: 12px sans-serif; fill: #444 } polyline { fill: none; stroke: #1b6ac9; stroke-width: 1.5 }"
    minutes = f'<text x="{LEFT}" y="{height - 12}">0 to {samples[-1].at / 60:.0f} minutes</text>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}"><style>{style}</style>'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, minutes, "</svg>", ""])


def _panel(number: int, name: str, samples: Sequence[Sample], figure: Callable[[Sample], float]) -> str:
    top = GAP // 2 + number * (HEIGHT + GAP)
    values = [figure(each) for each in samples]
    most, end = max([*values, 1]) * 1.1, max(samples[-1].at, 1)
    points = " ".join(
        f"{LEFT + WIDTH * each.at / end:.1f},{top + HEIGHT * (1 - value / most):.1f}"
        for each, value in zip(samples, values, strict=True)
    )
    return "\n".join(
        (
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>',
            f'<text x="{LEFT}" y="{top - 6}">{name}: {values[0]:,.0f} to {values[-1]:,.0f}</text>',
            f'<text x="6" y="{top + 12}">{most:,.0f}</text><text x="6" y="{top + HEIGHT}">0</text>',
            f'<polyline points="{points}"/>',
        )
    )
