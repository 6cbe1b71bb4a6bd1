"""Quality of service of a pod, derived from the resources of the containers.

BestEffort  no cpu or memory requests or limits
Guaranteed  every container limits both, and requests equal limits
Burstable   everything else
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.resources import ResourceList, read_resources
from pilothouse.kube.validation.resource_names import is_pod_level
from pilothouse.machinery.objects import Json

_COMPUTE = ("cpu", "memory")


def qos_class(pod: Json) -> str:
    """Return the class in the pod's status, or compute the class from the spec."""
    return (pod.get("status") or {}).get("qosClass") or compute_qos_class(pod.get("spec") or {})


def compute_qos_class(spec: Json) -> str:
    # Pod-level resources replace the resources of the containers.
    if has_pod_level_resources(spec):
        parts = [spec] if spec["resources"].get("limits") else []
        sources: Iterable[Json] = [spec]
    else:
        sources = parts = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests, limits = _total(sources, "requests"), _total(sources, "limits")
    if not requests and not limits:
        return "BestEffort"
    all_limited = all(len(_positive(part, "limits")) == len(_COMPUTE) for part in parts)
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def has_pod_level_resources(spec: Json) -> bool:
    """Report whether pod-level resources decide the class. Since 1.37, resources without an amount do not."""
    resources = spec.get("resources")
    if resources is None or not enabled("PodLevelResourcesFixKubeletQOSClass"):
        return resources is not None
    return any(is_pod_level(name) for kind in ("requests", "limits") for name in resources.get(kind) or ())


def _total(parts: Iterable[Json], kind: str) -> ResourceList:
    total: ResourceList = {}
    for part in parts:
        for name, amount in _positive(part, kind).items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _positive(part: Json, kind: str) -> ResourceList:
    amounts = read_resources(part, kind)
    return {name: amounts[name] for name in _COMPUTE if name in amounts and amounts[name].sign > 0}
