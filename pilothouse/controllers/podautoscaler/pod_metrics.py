"""Clients of metrics.k8s.io (pods), custom.metrics.k8s.io (objects) and external.metrics.k8s.io.

Values are in thousandths (milli-units).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse, has_no_status
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupKind, GroupVersion
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.selectors.labels import Selector
from pilothouse.machinery.status_error import PilothouseError, StatusError
from pilothouse.machinery.times import parse_time

_DEFAULT_WINDOW = 60.0
_CUSTOM = "custom.metrics.k8s.io"
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_FAILURES = (StatusError, ConnectionFailed, InvalidResponse, NoMatch)


class MetricsUnavailable(PilothouseError):
    """The autoscaler's metrics cannot be read, or do not match its pods."""


@dataclass(frozen=True, slots=True)
class PodMetric:
    value: int
    timestamp: datetime | None = None
    window: float = _DEFAULT_WINDOW
    """Measurement window in seconds before the timestamp."""


class MetricsClient:
    def __init__(self, client: Client, mapper: RESTMapper) -> None:
        self._client = client
        self._mapper = mapper

    async def of_resource(
        self, resource: str, namespace: str, selector: Selector, container: str = ""
    ) -> dict[str, PodMetric]:
        """Return the resource usage by pod, optionally of one container. Raises MetricsUnavailable."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
        items = await self._items("resource", "pods.metrics.k8s.io", path, labelSelector=str(selector))
        metrics = ((name_of(item), _usage(item, resource, container)) for item in items)
        return {name: metric for name, metric in metrics if metric is not None}

    async def of_pods(
        self, metric: str, namespace: str, selector: Selector, metric_selector: Selector
    ) -> dict[str, PodMetric]:
        """Return a custom metric by pod. Raises MetricsUnavailable."""
        path = await self._custom_path(f"namespaces/{namespace}/pods/*/{quote(metric)}")
        selectors = {"labelSelector": str(selector), "metricLabelSelector": str(metric_selector)}
        items = await self._items("custom", f"pods.{_CUSTOM} *", path, **selectors)
        return {item["describedObject"]["name"]: _custom(item) for item in items}

    async def of_object(self, metric: str, namespace: str, reference: Json, metric_selector: Selector) -> int:
        """Return a custom metric of one object. Raises MetricsUnavailable."""
        group, kind = GroupVersion.parse(reference.get("apiVersion") or "v1").group, reference["kind"]
        if kind == "Namespace" and not group:
            rest = f"namespaces/{namespace}/metrics/{quote(metric)}"  # always the autoscaler's own namespace
        else:
            try:
                mapping = await self._mapper.mapping(GroupKind(group, kind))
            except _FAILURES as error:
                raise _unfetched("custom", error) from None
            rest = (
                f"namespaces/{namespace}/{mapping.resource.group_resource}/{quote(reference['name'])}/{quote(metric)}"
            )
        metric_name = f"{rest.split('/')[2]}.{_CUSTOM} {reference['name']}"
        items = await self._items(
            "custom", metric_name, await self._custom_path(rest), metricLabelSelector=str(metric_selector)
        )
        if len(items) != 1:
            message = f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
            raise _unfetched("custom", message)
        return milli_value(items[0]["value"])

    async def external(self, metric: str, namespace: str, selector: Selector) -> list[int]:
        """Return all values of an external metric. Raises MetricsUnavailable."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{quote(metric)}"
        metric_name = f"{metric}.external.metrics.k8s.io"
        items = await self._items("external", metric_name, path, labelSelector=str(selector))
        return [milli_value(item["value"]) for item in items]

    async def _custom_path(self, rest: str) -> str:
        """Return the path in the server's preferred version, if supported here."""
        try:
            served = await self._client.get_json(f"/apis/{_CUSTOM}")
        except NotFound:
            raise _unfetched("custom", f"no custom metrics API ({_CUSTOM}) registered") from None
        except _FAILURES as error:
            raise _unfetched("custom", error) from None
        versions = [served.get("preferredVersion") or {}, *(served.get("versions") or ())]
        known = [version["version"] for version in versions if version.get("version") in _CUSTOM_VERSIONS]
        if not known:
            raise _unfetched("custom", "no known available metric versions found")
        return f"/apis/{_CUSTOM}/{known[0]}/{rest}"

    async def _items(self, api: str, metric_name: str, path: str, **params: str) -> list[Json]:
        """Return the items of a metric list; `what` names the resource in errors."""
        given = {name: value for name, value in params.items() if value}
        try:
            items: list[Json] = (await self._client.get_json(path, given)).get("items") or []
        except NotFound as error:
            unserved = f"the server could not find the requested resource (get {metric_name})"
            raise _unfetched(api, unserved if has_no_status(error) else error) from None
        except _FAILURES as error:
            raise _unfetched(api, error) from None
        if not items:
            raise MetricsUnavailable(f"no metrics returned from {api} metrics API")
        return items


def _unfetched(api: str, error: object) -> MetricsUnavailable:
    return MetricsUnavailable(f"unable to fetch metrics from {api} metrics API: {error}")


def _usage(item: Json, resource: str, container: str) -> PodMetric | None:
    """Return the usage; None if a container does not report it."""
    containers: Iterable[Json] = item.get("containers") or ()
    used = [
        (entry.get("usage") or {}).get(resource) for entry in containers if not container or entry["name"] == container
    ]
    if not used or None in used:
        return None
    window = parse_duration(item["window"]) / 1e9 if item.get("window") else 0.0
    return PodMetric(sum(map(milli_value, used)), _moment(item), window)


def _custom(item: Json) -> PodMetric:
    window = item.get("windowSeconds", item.get("window"))
    return PodMetric(milli_value(item["value"]), _moment(item), _DEFAULT_WINDOW if window is None else float(window))


def _moment(item: Json) -> datetime | None:
    return parse_time(item["timestamp"]) if item.get("timestamp") else None


def milli_value(amount: object) -> int:
    """Return a quantity in thousandths; `amount` is its JSON form, a string or a number."""
    return parse_quantity(str(amount)).milli_value()
