from __future__ import annotations

import gc

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.storage.cacher.metrics import OBJECTS, RESOURCE_OBJECTS, CacheMetrics
from pilothouse.apiserver.tallies import CounterTally, HistogramTally
from pilothouse.machinery.names import GroupResource


def test_too_many_rows_are_counted_together() -> None:
    registry = CollectorRegistry()
    counter = CounterTally("asked", "…", ("name",), registry=registry)
    histogram = HistogramTally("took", "…", ("name",), bounds=(1,), registry=registry)
    for number in range(10_100):
        counter.inc((str(number),))
        histogram.observe((str(number),), 0.5)
    assert registry.get_sample_value("asked_total", {"name": "9999"}) == 1
    assert registry.get_sample_value("asked_total", {"name": "other"}) == 100
    assert registry.get_sample_value("took_count", {"name": "other"}) == 100


def test_labels_that_are_too_long_are_counted_together() -> None:
    registry = CollectorRegistry()
    counter = CounterTally("asked", "…", ("name", "kind"), registry=registry)
    for number in range(3):
        counter.inc((f"{number}".ljust(2000, "x"), "k"))
    counter.inc(("short", "k"))
    assert registry.get_sample_value("asked_total", {"name": "other", "kind": "other"}) == 3
    assert registry.get_sample_value("asked_total", {"name": "short", "kind": "k"}) == 1


def counted_objects(*labels: str) -> float:
    (metric,) = RESOURCE_OBJECTS.labels(*labels).collect()
    return metric.samples[0].value


def test_the_metric_of_a_cache_does_not_keep_its_objects() -> None:
    class Objects(list[int]):
        size = 300

    objects, labels = Objects([1, 2, 3]), ("example.com", "counted")
    CacheMetrics(GroupResource(*labels)).count_objects(objects)
    assert counted_objects(*labels) == 3
    del objects
    gc.collect()
    assert counted_objects(*labels) == 0
    RESOURCE_OBJECTS.remove(*labels)
    OBJECTS.remove("counted.example.com")


def test_a_large_bound_is_shown_with_all_its_digits() -> None:
    registry = CollectorRegistry()
    HistogramTally("sizes", "Sizes.", (), bounds=(0.005, 16777216), registry=registry).observe((), 1)
    assert registry.get_sample_value("sizes_bucket", {"le": "16777216"}) == 1
    assert registry.get_sample_value("sizes_bucket", {"le": "0.005"}) == 0
