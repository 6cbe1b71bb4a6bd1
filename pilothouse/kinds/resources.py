"""ResourceList arithmetic (resource name -> quantity), and the resources of a whole pod.

A pod's resources are the sum over its containers, with sidecars and init containers counted as upstream does. Init
containers run one after the other, beside the sidecars started before them:

    total = max(containers + sidecars, greatest of (init container + sidecars before it))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeVar

from pilothouse.kinds.pods import is_sidecar
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity

Amount = TypeVar("Amount", int, Quantity)
"""Quantities are exact; the scheduler counts in integers, because sums of integers are cheap."""

ContainerAmounts: TypeAlias = Callable[[Json], Mapping[str, Amount]]

ResourceList: TypeAlias = dict[str, Quantity]


def aggregate_requests(spec: Json) -> ResourceList:
    return aggregate(spec, lambda container: read_resources(container, "requests"))


def aggregate_limits(spec: Json) -> ResourceList:
    return aggregate(spec, lambda container: read_resources(container, "limits"))


def read_resources(container: Json, field: str) -> ResourceList:
    """Return the requests or limits (`field`) of a container as quantities."""
    return read_amounts((container.get("resources") or {}).get(field) or {})


def aggregate(
    spec: Json, amounts_of: ContainerAmounts[Amount], init_amounts_of: ContainerAmounts[Amount] | None = None
) -> dict[str, Amount]:
    """Return what a pod with this spec needs of each resource.

    `amounts_of` reads main containers and sidecars; `init_amounts_of` reads the init containers that end before the
    main containers start, and defaults to `amounts_of`.
    """
    total: dict[str, Amount] = {}
    for container in spec.get("containers") or ():
        add_to(total, amounts_of(container))
    init_containers = spec.get("initContainers")
    if not init_containers:
        return total
    sidecars: dict[str, Amount] = {}
    peak: dict[str, Amount] = {}
    for container in init_containers:
        if is_sidecar(container):
            needed = amounts_of(container)
            add_to(total, needed)
            add_to(sidecars, needed)
            raise_to(peak, sidecars)
        else:
            starting = dict((init_amounts_of or amounts_of)(container))
            add_to(starting, sidecars)
            raise_to(peak, starting)
    raise_to(total, peak)
    return total


def add_to(total: dict[str, Amount], more: Mapping[str, Amount]) -> None:
    """Add each amount of `more` to `total`."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def raise_to(total: dict[str, Amount], least: Mapping[str, Amount]) -> None:
    """Raise each amount of `total` to at least the amount in `least`."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def read_amounts(amounts: Mapping[str, str]) -> ResourceList:
    """Parse a ResourceList from JSON. Raises QuantityError."""
    return {name: parse_quantity(text) for name, text in amounts.items()}


def added(one: ResourceList, other: ResourceList) -> ResourceList:
    return {name: one.get(name, ZERO) + other.get(name, ZERO) for name in one | other}


def increase(new: ResourceList, old: ResourceList) -> ResourceList:
    """Return the growth of each resource in `new` over `old`; zero for resources that did not grow."""
    grown = {name: amount - old.get(name, ZERO) for name, amount in new.items()}
    return {name: amount if amount.sign > 0 else ZERO for name, amount in grown.items()}


def only(amounts: ResourceList, names: Collection[str]) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in names}


def without_zeros(amounts: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if amount}


def written(amounts: ResourceList) -> dict[str, str]:
    """Return the ResourceList as JSON, sorted by resource."""
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def shown(amounts: ResourceList) -> str:
    """Return the ResourceList as quota messages show it: cpu=1,memory=2Gi."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
