"""The resources that a pod takes from its node, as whole numbers, so that sums of many cost little.

init containers run one after the other beside the sidecars started before them:
    total = max(containers + sidecars, greatest of (init container + sidecars before it))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

Amounts: TypeAlias = dict[str, int]
"""By the resource's name: cpu in thousandths, everything else in whole units."""

CPU, MEMORY, PODS = "cpu", "memory", "pods"
FOR_CONTAINERS_WITHOUT: Amounts = {CPU: 100, MEMORY: 200 << 20}
"""How much a container that requests nothing counts for, where nodes are compared by how full they are."""
_OF_A_WHOLE_POD = (CPU, MEMORY)


def read_amounts(amounts: Mapping[str, str] | None) -> Amounts:
    return {name: _amount(name, text) for name, text in amounts.items()} if amounts else {}


@bounded_cache(entries=4096, key_bytes=80)
def _amount(name: str, text: str) -> int:
    quantity = parse_quantity(str(text))
    return quantity.milli_value() if name == CPU else quantity.value()


def pod_requests(pod: Json, *, at_least: Amounts | None = None) -> Amounts:
    """Return what the pod takes; with `at_least`, each container that does not say counts for so much."""
    spec, actual = pod["spec"], _actual_resources(pod)
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _container_requests(container, actual, at_least))
    _raise_to(total, _init_peak(spec.get("initContainers") or (), actual, at_least, total))
    total |= _of_the_whole_pod(pod)
    _add(total, read_amounts(spec.get("overhead")))
    return total


def _container_requests(container: Json, actual: Mapping[str, Json], at_least: Amounts | None) -> Amounts:
    requests = read_amounts((container.get("resources") or {}).get("requests"))
    if actual and (status := actual.get(container["name"])) is not None:
        _raise_to(requests, read_amounts((status.get("resources") or {}).get("requests")))
        _raise_to(requests, read_amounts(status.get("allocatedResources")))
    return at_least | requests if at_least else requests


def _init_peak(
    containers: Iterable[Json], actual: Mapping[str, Json], at_least: Amounts | None, total: Amounts
) -> Amounts:
    """The most that is needed while the pod starts. Sidecars also count towards the total."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in containers:
        is_sidecar = container.get("restartPolicy") == "Always"
        needed = _container_requests(container, actual if is_sidecar else {}, at_least)
        if is_sidecar:
            _add(total, needed)
            _add(sidecars, needed)
            _raise_to(peak, sidecars)
        else:
            _add(needed, sidecars)
            _raise_to(peak, needed)
    return peak


def _of_the_whole_pod(pod: Json) -> Amounts:
    requests = (pod["spec"].get("resources") or {}).get("requests")
    if not requests:
        return {}
    chosen = {name: text for name, text in requests.items() if name in _OF_A_WHOLE_POD or name.startswith("hugepages-")}
    return read_amounts(chosen)


def _actual_resources(pod: Json) -> dict[str, Json]:
    """Return the status of each container that says what it has. While it is resized, the greater amount counts."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return {each["name"]: each for each in statuses if each.get("resources")}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, -1):
            total[name] = amount
