"""Aggregator: how the servers of other API groups are reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pilothouse.controlplane.flags.declare import flag
from pilothouse.controlplane.flags.values import BOOL


@dataclass(frozen=True)
class AggregatorOptions:
    title: ClassVar[str] = "aggregator"

    enable_routing: bool = flag(
        "enable-aggregator-routing",
        BOOL,
        False,
        "Reach Services by the addresses of their endpoints; if false, by their cluster IPs. "
        "Without it, by endpoints where there are ready ones, and otherwise by cluster IPs.",
    )

    def validate(self) -> Iterator[str]:
        yield from ()
