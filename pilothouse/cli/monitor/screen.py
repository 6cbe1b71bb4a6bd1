"""Rendering of figures as one terminal screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pilothouse.cli.monitor.figures import Figures, Process, Row

_UNITS = ("B", "kB", "MB", "GB", "TB")
_SLOW = 1.0
"""Seconds. The Kubernetes SLO for the 99th percentile of single-object requests."""


def screen(figures: Figures, host: str, *, rows: int = 6) -> RenderableType:
    """Render the figures. Each table has at most `rows` rows."""
    return Group(
        _head(figures, host),
        _side_by_side(_requests("verb", figures.verbs, rows), _requests("resource", figures.resources, rows)),
        _slowest(figures.slowest, rows),
        _side_by_side(_store(figures, rows), _watchers(figures, rows), _levels(figures), _queues(figures, rows)),
    )


def _side_by_side(*tables: Table) -> RenderableType:
    return Columns(tables, padding=(0, 4))


def _head(figures: Figures, host: str) -> RenderableType:
    running, waiting = figures.offloaded
    first = f"{host}  {figures.version}  up {duration(figures.uptime)}  revision {figures.revision}"
    second = (
        f"{_load(figures.whole)}  {figures.in_flight:.0f} requests in flight  "
        f"{running:.0f} offloaded jobs, {waiting:.0f} waiting"
    )
    workers = "  ".join(f"{worker.name}: {_load(worker)}" for worker in figures.workers)
    third = [f"workers  {workers}  {figures.restarts:.0f} restarts"] if workers else []
    return Panel(Text("\n".join([first, second, *third])), title="pilothouse top", title_align="left")


def _load(process: Process) -> str:
    return f"{100 * process.processor:.0f} % of a core, {size(process.memory)}"


def _requests(by: str, rows: list[Row], most: int) -> Table:
    table = _table(f"Requests by {by}", by, "/s", "p50", "p99", "errors/s")
    for row in rows[:most]:
        slow = "red" if (row.p99 or 0) > _SLOW else ""
        errors = Text(rate(row.errors), "yellow" if row.errors else "dim")
        table.add_row(row.name, rate(row.rate), seconds(row.median), Text(seconds(row.p99), slow), errors)
    return table


def _slowest(requests: list[dict[str, Any]] | None, most: int) -> RenderableType:
    if requests is None:
        return Text("Slowest requests: not recorded; start the server with --recent-requests=1000\n", "dim")
    lines = [Text("Slowest of the last requests", "bold italic"), *map(_request_line, requests[:most]), Text()]
    return Group(*lines)


def _request_line(request: dict[str, Any]) -> Text:
    """Render one line; long lines are cut at the end."""
    client = f"{request['user']}, {request['userAgent']}"
    text = f"{seconds(request['seconds']):>9} {request['code']} {request['method']} {request['target']}  ({client})"
    return Text(text, no_wrap=True, overflow="ellipsis")


def _store(figures: Figures, most: int) -> Table:
    table = _table("Store", "operation", "/s", "p50", "p99")
    for row in figures.store[:most]:
        table.add_row(row.name, rate(row.rate), seconds(row.median), seconds(row.p99))
    if figures.writes_of_a_commit is not None:
        table.add_row("writes per commit", f"{figures.writes_of_a_commit:.1f}", "", "")
    objects = sum(count for _, count in figures.objects)
    greatest = f", most {figures.objects[0][0]}" if figures.objects else ""
    table.caption = f"{objects:.0f} objects{greatest}"
    return table


def _watchers(figures: Figures, most: int) -> Table:
    title = f"Watches ({sum(count for _, count in figures.watchers):.0f}, {rate(figures.watch_events)} events/s)"
    return _counted(title, ((name, f"{count:.0f}") for name, count in figures.watchers[:most]), "resource", "open")


def _levels(figures: Figures) -> Table:
    table = _table("Priority levels", "level", "executing", "waiting", "seats")
    for level in figures.levels:
        waiting = Text(f"{level.waiting:.0f}", "red" if level.waiting else "")
        table.add_row(level.name, f"{level.executing:.0f}", waiting, f"{level.seats:.0f}")
    return table


def _queues(figures: Figures, most: int) -> Table:
    rows = ((name, f"{depth:.0f}", rate(adds)) for name, depth, adds in figures.queues[:most])
    return _counted("Work queues", rows, "queue", "depth", "added/s")


def _counted(title: str, rows: Iterable[tuple[str, ...]], *columns: str) -> Table:
    table = _table(title, *columns)
    for row in rows:
        table.add_row(*row)
    return table


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", caption_justify="left", box=None, pad_edge=False
    )
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.1f} ms"


def size(value: float) -> str:
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_UNITS[unit]}"


def duration(value: float) -> str:
    whole = int(max(value, 0))
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
