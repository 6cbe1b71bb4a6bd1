"""The cells that show an autoscaler's metrics: current and target values of the first two."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, items, part, text

_SHOWN = 2
_UNKNOWN = "<unknown>"
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def format_metrics(obj: Json) -> str:
    metrics, statuses = items(obj, "spec", "metrics"), items(obj, "status", "currentMetrics")
    if not metrics:
        return "<none>"
    cells = [
        _format_metric(metric, statuses[position] if position < len(statuses) else {})
        for position, metric in enumerate(metrics[:_SHOWN])
    ]
    more = len(metrics) - _SHOWN
    return ", ".join(cells) + (f" + {more} more..." if more > 0 else "")


def _format_metric(metric: Json, status: Json) -> str:
    source = _SOURCES.get(text(metric, "type"))
    if source is None:
        return "<unknown type>"
    target, current = part(metric, source, "target"), status.get(source) and part(status, source, "current")
    if source in ("resource", "containerResource"):
        return f"{text(metric, source, 'name')}: {_format_resource(target, current)}"
    average = target.get("averageValue")
    if source == "pods":
        return f"{_amount(current, 'averageValue', '<nil>')}/{average}"
    if average is not None:
        return f"{_amount(current, 'averageValue', _UNKNOWN)}/{average} (avg)"
    return f"{_amount(current, 'value', '<nil>')}/{target.get('value', '<nil>')}"


def _format_resource(target: Json, current: Json | None) -> str:
    average = target.get("averageValue")
    if average is not None:
        return f"{_amount(current, 'averageValue', '<nil>')}/{average}"
    return f"{_percent(current)}/{_percent(target, '<auto>')}"


def _amount(current: Json | None, field: str, missing: str) -> str:
    """`missing` is what Go prints for a status that does not have the amount."""
    return _UNKNOWN if current is None else current.get(field, missing)


def _percent(values: Json | None, missing: str = _UNKNOWN) -> str:
    percent = (values or {}).get("averageUtilization")
    return missing if percent is None else f"{percent}%"
