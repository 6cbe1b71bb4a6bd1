"""Sums and comparisons of amounts by name."""

from __future__ import annotations

from collections.abc import Collection

from pilothouse.kube.core.pods.resource_totals import ResourceList
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import ZERO, parse_quantity


def read_amounts(amounts: Json) -> ResourceList:
    return {name: parse_quantity(text) for name, text in amounts.items()}


def added(one: ResourceList, other: ResourceList) -> ResourceList:
    return {name: one.get(name, ZERO) + other.get(name, ZERO) for name in one | other}


def increase(new: ResourceList, old: ResourceList) -> ResourceList:
    """What the new has more than the old; nothing where it has less."""
    grown = {name: amount - old.get(name, ZERO) for name, amount in new.items()}
    return {name: amount if amount.sign > 0 else ZERO for name, amount in grown.items()}


def only(amounts: ResourceList, names: Collection[str]) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in names}


def without_zeros(amounts: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if amount}


def shown(amounts: ResourceList) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
