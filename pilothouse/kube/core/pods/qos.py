"""The quality of service that a pod gets, from what its containers ask for.

BestEffort  nobody asks for cpu or memory
Guaranteed  everybody limits both, and asks for just that
Burstable   anything else
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kinds.pod_resources import read_resources
from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.machinery.objects import Json

_COMPUTE = ("cpu", "memory")


def qos_class(pod: Json) -> str:
    """The class that the pod was given when it was created, or would be given now."""
    return (pod.get("status") or {}).get("qosClass") or compute_qos_class(pod.get("spec") or {})


def compute_qos_class(spec: Json) -> str:
    # Resources of the pod as a whole take the place of its containers'.
    if spec.get("resources") is not None:
        parts = [spec] if spec["resources"].get("limits") else []
        sources: Iterable[Json] = [spec]
    else:
        sources = parts = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests, limits = _total(sources, "requests"), _total(sources, "limits")
    if not requests and not limits:
        return "BestEffort"
    all_limited = all(len(_positive(part, "limits")) == len(_COMPUTE) for part in parts)
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _total(parts: Iterable[Json], kind: str) -> ResourceList:
    total: ResourceList = {}
    for part in parts:
        for name, amount in _positive(part, kind).items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _positive(part: Json, kind: str) -> ResourceList:
    amounts = read_resources(part, kind)
    return {name: amounts[name] for name in _COMPUTE if name in amounts and amounts[name].sign > 0}
