"""The resources of a pod's containers together, with sidecars and init containers counted as the scheduler does.

init containers run one after the other beside the sidecars started before them:
    total = max(containers + sidecars, greatest of (init container + sidecars before it))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import Quantity, parse_quantity
from pilothouse.machinery.resource_list import ResourceList


def aggregate_requests(spec: Json) -> ResourceList:
    return _aggregate(spec, "requests")


def aggregate_limits(spec: Json) -> ResourceList:
    return _aggregate(spec, "limits")


def read_resources(container: Json, kind: str) -> ResourceList:
    """A container's requests or limits as quantities."""
    amounts: Mapping[str, str] = (container.get("resources") or {}).get(kind) or {}
    return {name: parse_quantity(text) for name, text in amounts.items()}


def is_sidecar(container: Json) -> bool:
    """An init container that goes on running."""
    return container.get("restartPolicy") == "Always"


def _aggregate(spec: Json, kind: str) -> ResourceList:
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        _add(total, read_resources(container, kind))
    peak = _init_peak(spec.get("initContainers") or (), kind, total)
    _raise_to(total, peak)
    return total


def _init_peak(containers: Iterable[Json], kind: str, total: ResourceList) -> ResourceList:
    """The most that is needed while the pod starts. Sidecars also count towards the total."""
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in containers:
        needed = read_resources(container, kind)
        if is_sidecar(container):
            _add(total, needed)
            _add(sidecars, needed)
            _raise_to(peak, sidecars)
        else:
            _add(needed, sidecars)
            _raise_to(peak, needed)
    return peak


def _add(total: ResourceList, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: ResourceList, least: Mapping[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount
