"""The addresses of one CIDR, in two bands: clients that name an address should take it from the lower one,
and addresses that nobody names come from the upper one for as long as it has some.

    10.0.0.0/24:  .0 the network | .1 to .16 lower band | .17 to .254 upper band | .255 broadcast
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from random import Random

from pilothouse.kube.validation.addresses import IPV4, IPV6
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.validation.addresses import Address, parse_cidr_sloppy

SHORTEST_IPV6_PREFIX = 64

_LEAST_OFFSET, _MOST_OFFSET, _OFFSET_STEP = 16, 256, 16


@dataclass(frozen=True, slots=True)
class AddressRange:
    """`first` and `last` are the first and the last address that can be handed out; a range may have none."""

    cidr: str
    family: str
    network: int
    first: int
    last: int
    lower_band: int
    """How many addresses the lower band has."""

    @classmethod
    def of(cls, text: str) -> AddressRange | None:
        """Return the range of a CIDR; None if the text is no CIDR, or too large a one."""
        cidr = parse_cidr_sloppy(text)
        if cidr is None:
            return None
        bits = cidr.address.max_prefixlen
        if bits == 128 and cidr.bits < SHORTEST_IPV6_PREFIX:
            return None
        size = 1 << (bits - cidr.bits)
        network = int(cidr.address) // size * size
        last = network + size - (2 if bits == 32 else 1)
        family = IPV4 if bits == 32 else IPV6
        return cls(text, family, network, network + 1, last, _offset(size))

    def __contains__(self, address: Address) -> bool:
        return self._kind is type(address) and self.first <= int(address) <= self.last

    @property
    def size(self) -> int:
        """The number of addresses that can be handed out."""
        return max(self.last - self.first + 1, 0)

    @property
    def network_address(self) -> str:
        return str(self._kind(self.network))

    def candidates(self, random: Random) -> Iterator[str]:
        """Every address once: each band from a random start onwards, the upper band first."""
        boundary = self.first + self.lower_band
        for low, high in ((boundary, self.last), (self.first, boundary - 1)):
            for number in _from_anywhere(low, high, random):
                yield str(self._kind(number))

    @property
    def _kind(self) -> type[IPv4Address] | type[IPv6Address]:
        return IPv4Address if self.family == IPV4 else IPv6Address


def _offset(size: int) -> int:
    if size <= _LEAST_OFFSET:
        return 0
    return min(max(size // _OFFSET_STEP, _LEAST_OFFSET), _MOST_OFFSET)


def _from_anywhere(low: int, high: int, random: Random) -> Iterator[int]:
    if low > high:
        return
    start = random.randint(low, high)
    yield from range(start, high + 1)
    yield from range(low, start)
