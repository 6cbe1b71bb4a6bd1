"""ResourceList arithmetic: resource name -> quantity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity

ResourceList: TypeAlias = dict[str, Quantity]


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
