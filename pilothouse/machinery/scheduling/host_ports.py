"""Ports of a node that pods ask for: each belongs to one pod, and one that is taken for all addresses, for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from pilothouse.machinery.objects import Json

HostPort: TypeAlias = tuple[str, str, int]
"""Protocol, address and number."""

_EVERY_ADDRESS = "0.0.0.0"


def host_ports(spec: Json) -> Iterator[HostPort]:
    """Yield those of the containers and sidecars of a pod with this spec."""
    sidecars = (each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always")
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            if number := port.get("hostPort"):
                yield port.get("protocol") or "TCP", port.get("hostIP") or _EVERY_ADDRESS, number


def is_taken(address: str, by_others: Iterable[str]) -> bool:
    """Whether a port of this address is taken, if others have the port of these addresses."""
    others = tuple(by_others)
    return bool(others) and (address == _EVERY_ADDRESS or any(each in (address, _EVERY_ADDRESS) for each in others))
