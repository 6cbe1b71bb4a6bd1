"""Sets of node ports: a bitmap, the stored form, and errors of the allocation.

Dynamic allocation prefers the upper part of the range, clients should choose from the lower part.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from itertools import chain
from random import Random

import orjson

from pilothouse.kube.core.services.allocation.operation import lower_band


class PortAllocationError(Exception):
    """A port cannot be allocated; the message becomes part of the service's field error."""


class PortRangeFull(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("range is full")


class PortAlreadyAllocated(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("provided port is already allocated")


class PortNotInRange(PortAllocationError):
    def __init__(self, valid: str) -> None:
        super().__init__(f"provided port is not in the valid range. The range of valid ports is {valid}")


class RangeMismatch(PortAllocationError):
    def __init__(self) -> None:
        super().__init__("the provided range does not match the current range")


class NotInitialized(PortAllocationError):
    """The bitmap does not exist before the first repair."""

    def __init__(self) -> None:
        super().__init__("cannot allocate resources of type servicenodeports at this time")


class PortSet:
    """A subset of `ports`, a nonempty range."""

    __slots__ = ("_bits", "ports")

    def __init__(self, ports: range, bits: int = 0) -> None:
        self.ports = ports
        self._bits = bits  # bit n is the n-th port of the range

    @property
    def range_text(self) -> str:
        return f"{self.ports[0]}-{self.ports[-1]}"

    def __contains__(self, port: int) -> bool:
        return port in self.ports and bool(self._bits >> self.ports.index(port) & 1)

    def __iter__(self) -> Iterator[int]:
        remaining = self._bits  # iterate over set bits only: the set is sparse
        while remaining:
            lowest = remaining & -remaining
            yield self.ports[lowest.bit_length() - 1]
            remaining ^= lowest

    def __len__(self) -> int:
        return self._bits.bit_count()

    def add(self, port: int) -> None:
        self._bits |= 1 << self.ports.index(port)

    def discard(self, port: int) -> None:
        if port in self:
            self._bits ^= 1 << self.ports.index(port)

    def next_free(self, random: Random) -> int | None:
        """Return a free port from a random start, preferably in the upper part, or None if all ports are taken."""
        offset = lower_band(len(self.ports), least=16, most=128, step=32)
        for part in (self.ports[offset:], self.ports[:offset]):
            start = random.randrange(len(part)) if part else 0
            for port in chain(part[start:], part[:start]):
                if port not in self:
                    return port
        return None

    def encode(self) -> bytes:
        """Encode the set as a RangeAllocation, compatible with kube-apiserver."""
        data = self._bits.to_bytes((self._bits.bit_length() + 7) // 8, "big")
        return orjson.dumps(
            {
                "kind": "RangeAllocation",
                "apiVersion": "v1",
                "metadata": {},
                "range": self.range_text,
                "data": b64encode(data).decode(),
            }
        )

    @classmethod
    def decode(cls, value: bytes) -> PortSet:
        stored = orjson.loads(value)
        low, _, high = (stored.get("range") or "").partition("-")
        if not (low.isdigit() and high.isdigit()):
            raise RangeMismatch
        return cls(range(int(low), int(high) + 1), int.from_bytes(b64decode(stored.get("data") or ""), "big"))
