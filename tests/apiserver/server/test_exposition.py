"""Metrics as text: what Go's client library writes of the same numbers."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Gauge

from pilothouse.apiserver.server.metrics_endpoint import exposed, number
from pilothouse.apiserver.tallies import CounterTally, HistogramTally


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (-5, "-5"),
        (2.0, "2"),
        (0.005, "0.005"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (123456.789, "123456.789"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (1048576, "1.048576e+06"),
        (1.79483136987e9, "1.79483136987e+09"),
        (1e21, "1e+21"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_as_short_as_go_writes_them(value: float, written: str) -> None:
    assert number(value) == written


def test_families_labels_and_series_are_sorted() -> None:
    registry = CollectorRegistry()
    sizes = Gauge("sizes", "Sizes.", ("resource", "group"), registry=registry)
    sizes.labels("pods", "b").set(2)
    sizes.labels("jobs", "a").set(1.5)
    old = CounterTally("attempts", "Attempts\\tries.", ("result",), registry=registry, total=False)
    old.inc(('a"b',))
    taken = HistogramTally("taken_seconds", "Taken.", (), bounds=(0.5, 1), registry=registry)
    taken.observe((), 0.75)
    CounterTally("never", "Nobody counted.", (), registry=registry)
    CounterTally("unused", "Nobody counted.", ("why",), registry=registry)
    assert exposed(registry).decode().splitlines() == [
        r"# HELP attempts Attempts\\tries.",
        "# TYPE attempts counter",
        r'attempts{result="a\"b"} 1',
        "# HELP never_total Nobody counted.",
        "# TYPE never_total counter",
        "never_total 0",
        "# HELP sizes Sizes.",
        "# TYPE sizes gauge",
        'sizes{group="a",resource="jobs"} 1.5',
        'sizes{group="b",resource="pods"} 2',
        "# HELP taken_seconds Taken.",
        "# TYPE taken_seconds histogram",
        'taken_seconds_bucket{le="0.5"} 0',
        'taken_seconds_bucket{le="1"} 1',
        'taken_seconds_bucket{le="+Inf"} 1',
        "taken_seconds_sum 0.75",
        "taken_seconds_count 1",
    ]
