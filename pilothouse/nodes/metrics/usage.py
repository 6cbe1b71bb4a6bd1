"""How much containers use: as their behaviour says, or else a share of what they request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import MAX_INT64, NANO
from pilothouse.machinery.times import parse_time
from pilothouse.nodes.behavior.model import ContainerBehavior

BehaviorOf: TypeAlias = Callable[[Json, str], ContainerBehavior]

_SHARE: Final = "50%"
_CPU_WITHOUT_REQUEST, _MEMORY_WITHOUT_REQUEST = Decimal("0.001"), Decimal(8 * 1024 * 1024)
_MOST: Final = Decimal(MAX_INT64)
_PRECISE: Final = 10**9
_NODE_OVERHEAD_CPU, _NODE_OVERHEAD_MEMORY = Decimal("0.05"), Decimal(512 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Usage:
    cpu: Decimal
    """In cores."""
    memory: Decimal
    """In bytes."""


def pod_usage(pod: Json, behavior: BehaviorOf) -> dict[str, Usage]:
    """Return what each container that runs in the pod uses."""
    spec = pod.get("spec") or {}
    specs = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    running = {each["name"]: each for each in specs if started_at(pod, each["name"]) is not None}
    return {name: _usage(each, behavior(pod, name)) for name, each in running.items()}


def node_usage(pods: Iterable[Json], behavior: BehaviorOf) -> Usage:
    """Return what the node uses: its pods, and a little for itself."""
    each = [usage for pod in pods for usage in pod_usage(pod, behavior).values()]
    cpu = sum((usage.cpu for usage in each), _NODE_OVERHEAD_CPU)
    return Usage(cpu, sum((usage.memory for usage in each), _NODE_OVERHEAD_MEMORY))


def started_at(pod: Json, container: str) -> float | None:
    """Return when the container began to run, in seconds since the epoch; None for one that does not run."""
    status = pod.get("status") or {}
    for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if each.get("name") == container:
            text = ((each.get("state") or {}).get("running") or {}).get("startedAt")
            moment = parse_time(text) if text else None
            return None if moment is None else moment.timestamp()
    return None


def _usage(spec: Json, behavior: ContainerBehavior) -> Usage:
    resources = spec.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Usage(
        _amount(behavior.cpu, requests.get("cpu"), _CPU_WITHOUT_REQUEST),
        _amount(behavior.memory, requests.get("memory"), _MEMORY_WITHOUT_REQUEST),
    )


def _amount(said: str | None, requested: str | None, otherwise: Decimal) -> Decimal:
    """Return the quantity that is said, or the share of what is requested."""
    text = said or _SHARE
    if not text.endswith("%"):
        return _decimal(text, otherwise)
    try:
        share = Decimal(text[:-1]) / 100
        used = otherwise if requested is None else _decimal(requested, otherwise) * share
    except ArithmeticError:
        return otherwise
    return min(max(used, -_MOST), _MOST) if used.is_finite() else otherwise


def _decimal(text: str, otherwise: Decimal) -> Decimal:
    """Return the quantity, at most as much as an int64 holds: the digits of 1e900000 are never computed."""
    try:
        found = parse_quantity(text)
    except ValueError:
        return otherwise
    return Decimal(found.scaled_value(NANO)).scaleb(NANO) if abs(found.value()) < _PRECISE else Decimal(found.value())
