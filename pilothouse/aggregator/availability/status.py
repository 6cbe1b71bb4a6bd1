"""Writer of the Available condition, which skips writes that change nothing, and the metrics of unavailable
APIServices."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilothouse.aggregator.apiservice.strategy import API_SERVICES, AVAILABLE, GROUP_VERSION
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.client.rest.client import Client
from pilothouse.kinds.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of

_log = logging.getLogger(__name__)

_BECAME_UNAVAILABLE = CounterTally(
    "aggregator_unavailable_apiservice_total",
    "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
    ["name", "reason"],
    registry=REGISTRY,
)


class AvailabilityStatus:
    def __init__(self, client: Client) -> None:
        self._client = client.for_resource(GROUP_VERSION.resource(API_SERVICES.names.plural))

    async def put(self, api_service: Json, condition: Condition) -> None:
        """Write the condition. Raises StatusError. A conflict needs no retry: the concurrent change requeues the
        APIService."""
        name, available = name_of(api_service), condition.status == "True"
        note_availability(name, available=available)
        if condition.is_same_as(find_condition(api_service, AVAILABLE)):
            return
        changed = deepcopy(api_service)
        set_condition(changed, condition)
        with suppress(Conflict, NotFound):
            await self._client.update_status(changed)
            _log.info("APIService %s: available %s (%s)", name, condition.status, condition.reason)
            if is_true(api_service, AVAILABLE) and not available:
                count_unavailable(name, condition.reason)


class _Unavailable(Collector):
    """A gauge. prometheus_client's Gauge would clash with the name of the counter."""

    def __init__(self) -> None:
        self.rows: dict[str, float] = {}
        REGISTRY.register(self)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "aggregator_unavailable_apiservice",
            "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.",
            labels=["name"],
        )
        for name, value in self.rows.items():
            family.add_metric([name], value)
        yield family


_UNAVAILABLE = _Unavailable()


def note_availability(name: str, *, available: bool) -> None:
    _UNAVAILABLE.rows[name] = 0.0 if available else 1.0


def count_unavailable(name: str, reason: str) -> None:
    _BECAME_UNAVAILABLE.inc((name, reason))


def forget_availability(name: str) -> None:
    _UNAVAILABLE.rows.pop(name, None)
