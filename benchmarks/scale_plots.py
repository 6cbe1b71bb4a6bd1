"""Plots of the tables in docs/scale.md, as SVG.

    python benchmarks/scale_plots.py        writes docs/images/scale-processor.svg and docs/images/scale-memory.svg

The page is the source: a table that scale.py printed is pasted there, and the plots follow. Rows that were not run are
points of the model, and hollow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_DOCS = Path(__file__).parent.parent / "docs"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 300, 64, 48, 56
TICKS = 4
COLOURS = ("#1b6ac9", "#c9541b", "#3d8f4e", "#7a4fb5")

Row = dict[str, str]


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    is_measured: bool = True


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]


def table(page: str, heading: str) -> list[Row]:
    """Return the rows of the first table below the heading. A repeated column gets a number."""
    lines = iter(page.partition(f"### {heading}")[2].splitlines())
    head = next(line for line in lines if line.startswith("|"))
    next(lines)
    names: list[str] = []
    for cell in _cells(head):
        names.append(f"{cell} {names.count(cell) + 1}" if cell in names else cell)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(names, _cells(line), strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text: str) -> float:
    """The first number of a cell: "1,000" and "0.118 (−2 %)"."""
    found = re.search(r"[\d,]*\.?\d+", text)
    assert found, f"{text!r} has no number"
    return float(found[0].replace(",", ""))


def processor(page: str) -> list[Series]:
    """Cores by nodes, with pods that come and go."""
    measured, model = [], []
    for row in table(page, "Processor time"):
        if number(row["pods/s"]) == 0:
            continue
        nodes = number(row["nodes"])
        if row["server's cores"] != "not run":
            measured.append(Point(nodes, number(row["server's cores"])))
        model.append(Point(nodes, number(row["model"]), is_measured=False))
    return [Series("measured", measured), Series("model", model)]


def memory(page: str) -> list[Series]:
    """Megabytes by nodes, beside kube-apiserver with its etcd."""
    rows = table(page, "Memory and processor time beside kube-apiserver")
    busy = [row for row in rows if number(row["nodes, pods/s requested"].split(",")[1])]
    return [
        Series(name, [Point(number(row["nodes, pods/s requested"].split(",")[0]), number(row[column])) for row in busy])
        for name, column in (("Pilothouse", "MB"), ("kube-apiserver with etcd", "MB 2"))
    ]


def chart(title: str, x_name: str, y_name: str, series: Sequence[Series]) -> str:
    """Return lines with their points, from zero."""
    points = [point for each in series for point in each.points]
    x_step, y_step = _step(max(point.x for point in points)), _step(max(point.y for point in points))
    most_x, most_y = TICKS * x_step, TICKS * y_step

    def at(point: Point) -> tuple[float, float]:
        return LEFT + WIDTH * point.x / most_x, TOP + HEIGHT * (1 - point.y / most_y)

    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>']
    for tick in range(1, TICKS + 1):
        x, y = at(Point(tick * x_step, tick * y_step))
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{tick * y_step:,g}</text>')
        parts.append(f'<text x="{x:.0f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{tick * x_step:,g}</text>')
        parts.append(f'<path d="M{LEFT} {y:.0f}h{WIDTH}" stroke="#eee"/>')
    for position, (colour, each) in enumerate(zip(COLOURS, series, strict=False)):
        places = [at(point) for point in each.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for point, (x, y) in zip(each.points, places, strict=True):
            fill = colour if point.is_measured else "#fff"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}"/>')
        parts.append(f'<text x="{LEFT + 12}" y="{TOP + 20 + 18 * position}" style="fill:{colour}">{each.name}</text>')
    middle, height = LEFT + WIDTH / 2, TOP + HEIGHT + BOTTOM
    labels = (
        f'<text x="{LEFT}" y="20" style="font-weight:600">{title}</text><text x="{LEFT}" y="38">{y_name}</text>'
        f'<text x="{middle:.0f}" y="{height - 14}" text-anchor="middle">{x_name}</text>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 24} {height}" role="img" '
        f'aria-label="{title}"><style>text {{ font: 12px sans-serif; fill: #444 }}</style>'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, labels, "</svg>", ""])


def _step(most: float) -> float:
    """Return the smallest round step with which the axis reaches `most`."""
    power = 10.0 ** math.floor(math.log10(most / TICKS))
    return next(power * digit for digit in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if power * digit * TICKS >= most)


def main() -> None:
    page = (_DOCS / "scale.md").read_text(encoding="utf-8")
    for file, title, y_name, series in (
        ("scale-processor.svg", "Processor time of one process", "cores", processor(page)),
        ("scale-memory.svg", "Memory", "MB", memory(page)),
    ):
        (_DOCS / "images" / file).write_text(chart(title, "nodes", y_name, series), encoding="utf-8")


if __name__ == "__main__":
    main()
