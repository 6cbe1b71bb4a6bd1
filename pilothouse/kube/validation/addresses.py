"""IP addresses in fields of built-in kinds: families, endpoint addresses and legacy notations."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation import addresses

IPV4 = "IPv4"
IPV6 = "IPv6"

AT_MOST_TWO = "may only hold up to 2 values"
ONE_PER_FAMILY = "may specify no more than one IP for each IP family"

_LINK_LOCAL_MULTICAST = IPv4Network("224.0.0.0/24")


def legacy_ip(path: Path, value: str, *, old: Collection[str] = ()) -> Errors:
    """Validate an address in a field older than the strict notation."""
    return addresses.is_valid_ip_for_legacy_field(path, value, strict=enabled("StrictIPCIDRValidation"), old=old)


def legacy_cidr(path: Path, value: str, *, old: Collection[str] = ()) -> Errors:
    """As `legacy_ip`, of a range."""
    return addresses.is_valid_cidr_for_legacy_field(path, value, strict=enabled("StrictIPCIDRValidation"), old=old)


def ip_family(text: str) -> str:
    """Return IPv4, IPv6 or an empty string. IPv4-mapped IPv6 addresses are IPv4."""
    address = addresses.parse_ip_sloppy(text)
    if address is None:
        return ""
    return IPV4 if isinstance(_unmapped(address), IPv4Address) else IPV6


def cidr_family(text: str) -> str:
    cidr = addresses.parse_cidr_sloppy(text)
    return "" if cidr is None else ip_family(str(cidr.address))


def not_an_ip(name: str, path: Path) -> Errors:
    """Reject an IP address as a host name."""
    if addresses.parse_ip_sloppy(name) is not None:
        yield invalid(path, name, "must be a DNS name, not an IP address")


def endpoint_ip(text: str, path: Path) -> Errors:
    """Require a reachable address: not unspecified, loopback or link-local."""
    parsed = addresses.parse_ip_sloppy(text)
    if parsed is None:
        yield invalid(path, text, "must be a valid IP address")
        return
    address = _unmapped(parsed)
    if address.is_unspecified:
        yield invalid(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(address):
        yield invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def warnings_for_ip(text: str, path: Path) -> list[str]:
    """Return warnings about a legacy notation of an address."""
    address = addresses.parse_ip_sloppy(text)
    if address is None:
        return []
    if _is_lenient_ip(text):
        return [f"{path}: non-standard IP address {quote(text)} is invalid: use {quote(addresses.format_ip(address))}"]
    if isinstance(address, IPv6Address) and str(address) != text:
        canonical = quote(str(address))
        return [f"{path}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({canonical})"]
    return []


def warnings_for_cidr(text: str, path: Path) -> list[str]:
    """Return warnings about a legacy notation of a CIDR."""
    cidr = addresses.parse_cidr_sloppy(text)
    if cidr is None:
        return []
    canonical = f"{cidr.address}/{cidr.bits}"
    if canonical == text and isinstance(cidr.address, IPv4Address) and not cidr.has_host_bits:
        return []
    warnings = []
    if cidr.has_host_bits:
        single = f"{addresses.format_ip(cidr.address)}/{cidr.address.max_prefixlen}"
        meant = f"{quote(_network(cidr))} or {quote(single)}"
        warnings.append(f"{path}: CIDR value {quote(text)} is ambiguous in this context (should be {meant}?)")
    if _is_lenient_cidr(text):
        warnings.append(f"{path}: non-standard CIDR value {quote(text)} is invalid: use {quote(_network(cidr))}")
    if not warnings and isinstance(cidr.address, IPv6Address) and canonical != text:
        warnings.append(
            f"{path}: IPv6 CIDR value {quote(text)} should be in RFC 5952 canonical format ({quote(canonical)})"
        )
    return warnings


def _unmapped(address: addresses.Address) -> addresses.Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_link_local_multicast(address: addresses.Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_MULTICAST
    first, second = address.packed[:2]
    return first == 0xFF and second & 0x0F == 0x02


def _is_lenient_ip(text: str) -> bool:
    """Report whether only the lenient rules accept the address: leading zeros, or IPv4-mapped IPv6."""
    return any(addresses.is_valid_ip_for_legacy_field(Path(), text))


def _is_lenient_cidr(text: str) -> bool:
    """The same for the notation of a CIDR; bits beyond the prefix are another matter."""
    cidr = addresses.parse_cidr_sloppy(text)
    address, _, bits = text.partition("/")
    if cidr is None or _is_lenient_ip(address):
        return cidr is not None
    return bits != str(cidr.bits)


def _network(cidr: addresses.Cidr) -> str:
    """Return the network as Go prints it: IPv4-mapped networks as IPv4."""
    mapped = cidr.address.ipv4_mapped if isinstance(cidr.address, IPv6Address) else None
    if mapped is not None and cidr.bits >= 96:
        return str(IPv4Network((int(mapped), cidr.bits - 96), strict=False))
    return cidr.network
