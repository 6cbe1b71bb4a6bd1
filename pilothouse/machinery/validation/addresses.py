"""IP addresses and CIDRs: lenient for legacy API fields, strict for newer fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, FieldError, Path, invalid
from pilothouse.machinery.gofmt import quote

Address: TypeAlias = IPv4Address | IPv6Address

_KEPT = 1024
"""Cached parses: validation of an object reads each address several times."""
_OCTETS = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)", re.ASCII)
_PREFIX_LENGTH = re.compile(r"0*([0-9]{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address and its prefix length."""

    address: Address
    bits: int

    @property
    def network(self) -> str:
        kind = IPv4Network if isinstance(self.address, IPv4Address) else IPv6Network
        return str(kind((int(self.address), self.bits), strict=False))

    @property
    def has_host_bits(self) -> bool:
        return bool(int(self.address) & (1 << self.address.max_prefixlen - self.bits) - 1)


@bounded_cache(entries=_KEPT, key_bytes=64)
def parse_ip_sloppy(text: str) -> Address | None:
    """Parse an address with Kubernetes' legacy rules: leading zeros in IPv4 are ignored, zones are invalid. Returns
    None for invalid text."""
    if ":" not in text:
        return _parse_ipv4(text)
    head, _, tail = text.rpartition(":")
    if "." in tail:
        embedded = _parse_ipv4(tail)
        if embedded is None:
            return None
        number = int(embedded)
        text = f"{head}:{number >> 16:x}:{number & 0xFFFF:x}"
    try:
        return None if "%" in text else IPv6Address(text)
    except ValueError:
        return None


@bounded_cache(entries=_KEPT, key_bytes=64)
def parse_cidr_sloppy(text: str) -> Cidr | None:
    address_text, slash, bits_text = text.partition("/")
    address = parse_ip_sloppy(address_text)
    length = _PREFIX_LENGTH.fullmatch(bits_text)
    if not slash or address is None or length is None or int(length[1]) > address.max_prefixlen:
        return None
    return Cidr(address, int(length[1]))


def format_ip(address: Address) -> str:
    """Return an address as Go prints it: IPv4-mapped IPv6 addresses print as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def is_valid_ip_for_legacy_field(path: Path, value: str, *, strict: bool = True, old: Collection[str] = ()) -> Errors:
    """Validate an address in any notation. `old`: stored values, which stay valid."""
    return iter(()) if value in old else _ip_errors(path, value, strict=strict)


def is_valid_ip(path: Path, value: str) -> Errors:
    """Validate an address in canonical notation."""
    errors = list(_ip_errors(path, value, strict=True))
    yield from errors
    address = parse_ip_sloppy(value)
    if not errors and address is not None and value != format_ip(address):
        yield not_canonical(path, value, format_ip(address))


def is_valid_cidr_for_legacy_field(path: Path, value: str, *, strict: bool = True, old: Collection[str] = ()) -> Errors:
    """Validate a CIDR in any notation. `old`: stored values, which stay valid."""
    return iter(()) if value in old else _cidr_errors(path, value, strict=strict)


def is_valid_cidr(path: Path, value: str) -> Errors:
    """Validate a CIDR in canonical notation."""
    errors = list(_cidr_errors(path, value, strict=True))
    yield from errors
    cidr = parse_cidr_sloppy(value)
    if not errors and cidr is not None and value != cidr.network:
        yield not_canonical(path, value, cidr.network)


def not_canonical(path: Path, value: str, canonical: str) -> FieldError:
    return invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def _ip_errors(path: Path, value: str, *, strict: bool) -> Errors:
    address = parse_ip_sloppy(value)
    if address is None:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif strict:
        if _has_leading_zero(value):
            yield invalid(path, value, "must not have leading 0s")
        elif _is_mapped(address):
            yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def _cidr_errors(path: Path, value: str, *, strict: bool) -> Errors:
    cidr = parse_cidr_sloppy(value)
    if cidr is None:
        yield invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    elif strict:
        address, _, bits = value.partition("/")
        if _has_leading_zero(address) or bits != str(cidr.bits):
            yield invalid(path, value, "must not have leading 0s in IP or prefix length")
        elif _is_mapped(cidr.address):
            yield invalid(path, value, "must not have an IPv4-mapped IPv6 address")
        elif cidr.has_host_bits:
            yield invalid(path, value, "must not have bits set beyond the prefix length")


def _has_leading_zero(text: str) -> bool:
    """Return whether an IPv4 octet has a leading zero; IPv6 groups may have leading zeros."""
    octets = text.rpartition(":")[2].split(".")
    return len(octets) == 4 and any(octet != "0" and octet.startswith("0") for octet in octets)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _parse_ipv4(text: str) -> IPv4Address | None:
    match = _OCTETS.fullmatch(text)
    if match is None:
        return None
    number = 0
    for octet in match.groups():
        digits = octet.lstrip("0") or "0"
        if len(digits) > 3 or int(digits) > 255:
            return None
        number = number << 8 | int(digits)
    return IPv4Address(number)
