"""Metrics of several processes are shown as one server's."""

from __future__ import annotations

import marshal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pilothouse.apiserver.server.metrics_of_many import Sum, families_of


def process(requests: int, objects: int, seconds: float) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("requests", "Requests.", ["verb"], registry=registry).labels("GET").inc(requests)
    Gauge("apiserver_storage_objects", "Objects.", registry=registry).set(objects)
    Histogram("seconds", "Seconds.", buckets=(1, 2), registry=registry).observe(seconds)
    return registry


def test_what_each_counts_is_added_and_what_all_see_is_not() -> None:
    sent = marshal.loads(marshal.dumps(families_of(process(4, 10, 1.5))))
    together = CollectorRegistry()
    together.register(Sum([families_of(process(3, 12, 0.5)), sent]))
    lines = generate_latest(together).decode().splitlines()
    assert 'requests_total{verb="GET"} 7.0' in lines
    assert "apiserver_storage_objects 12.0" in lines
    assert [line for line in lines if line.startswith("seconds_bucket")] == [
        'seconds_bucket{le="1.0"} 1.0',
        'seconds_bucket{le="2.0"} 2.0',
        'seconds_bucket{le="+Inf"} 2.0',
    ]
