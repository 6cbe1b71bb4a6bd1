"""IP addresses and ranges, read with the rules and messages of Go's netip package."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

Address: TypeAlias = IPv4Address | IPv6Address
_HEX = "0123456789abcdefABCDEF"


class _Unreadable(Exception):
    """Text that is no address, with Go's reason."""


def _wrong(text: str, why: str, at: str = "") -> _Unreadable:
    place = f" (at {quote(at)})" if at else ""
    return _Unreadable(f"ParseAddr({quote(text)}): {why}{place}")


@bounded_cache(entries=512, key_bytes=128)
def _parse(text: str) -> tuple[Address, str]:
    """Return the address and its zone. Raises _Unreadable."""
    for char in text:
        if char == ".":
            return IPv4Address(bytes(_fields4(text, text))), ""
        if char == ":":
            return _parse6(text)
        if char == "%":
            raise _wrong(text, "missing IPv6 address")
    raise _wrong(text, "unable to parse IP")


def _fields4(whole: str, text: str) -> list[int]:
    fields: list[int] = []
    value, digits = 0, 0
    for index, char in enumerate(text):
        if "0" <= char <= "9":
            if digits == 1 and value == 0:
                raise _wrong(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                raise _wrong(whole, "IPv4 field has value >255")
        elif char == ".":
            if index == 0 or index == len(text) - 1 or text[index - 1] == ".":
                raise _wrong(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _wrong(whole, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _wrong(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _wrong(whole, "IPv4 address too short")
    return [*fields, value]


def _parse6(whole: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _wrong(whole, "zone must be a non-empty string")
    parts: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(0), zone
    while len(parts) < 16:
        end = _group_end(whole, rest)
        if rest[end : end + 1] == ".":
            if ellipsis < 0 and len(parts) != 12:
                raise _wrong(whole, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(parts) > 12:
                raise _wrong(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            parts += _fields4(whole, rest)
            rest = ""
            break
        parts += divmod(int(rest[:end], 16), 256)
        rest = rest[end:]
        if not rest:
            break
        if rest[0] != ":":
            raise _wrong(whole, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _wrong(whole, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _wrong(whole, "multiple :: in address", rest)
            ellipsis, rest = len(parts), rest[1:]
            if not rest:
                break
    return _expanded(whole, parts, ellipsis, rest), zone


def _group_end(whole: str, rest: str) -> int:
    end = 0
    while end < len(rest) and rest[end] in _HEX:
        if end > 3:
            raise _wrong(whole, "each group must have 4 or less digits", rest)
        end += 1
    if end == 0:
        raise _wrong(whole, "each colon-separated field must have at least one digit", rest)
    return end


def _expanded(whole: str, parts: list[int], ellipsis: int, rest: str) -> IPv6Address:
    if rest:
        raise _wrong(whole, "trailing garbage after address", rest)
    if len(parts) == 16:
        if ellipsis >= 0:
            raise _wrong(whole, "the :: must expand to at least one field of zeros")
    elif ellipsis < 0:
        raise _wrong(whole, "address string too short")
    else:
        parts[ellipsis:ellipsis] = [0] * (16 - len(parts))
    return IPv6Address(bytes(parts))


@dataclass(frozen=True, slots=True)
class IP:
    cel_type = "net.IP"

    address: Address

    def __str__(self) -> str:
        return str(self.address)

    @property
    def cel_size(self) -> int:
        return 4 if self.address.version == 4 else 16

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not IP:
            raise EvaluationFailed("no such overload")
        return bool(self.address == other.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    cel_type = "net.CIDR"

    address: Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def cel_size(self) -> int:
        return -(-self.bits // 8)

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not CIDR:
            raise EvaluationFailed("no such overload")
        return self == other

    def network(self, bits: int) -> tuple[int, int]:
        """Return (version, leading bits)."""
        return self.address.version, int(self.address) >> (self.address.max_prefixlen - bits)


def is_reading(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def run(text: str) -> bool:
        try:
            parse(text)
        except EvaluationFailed:
            return False
        return True

    return run


def parse_ip(text: str) -> IP:
    """Raises EvaluationFailed."""
    try:
        address, zone = _parse(text)
    except _Unreadable as error:
        why = f"IP Address {quote(text)} parse error during conversion from string: {error}"
        raise EvaluationFailed(why) from None
    if zone:
        raise EvaluationFailed(f"IP address {quote(text)} with zone value is not allowed")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationFailed(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IP(address)


def parse_cidr(text: str) -> CIDR:
    """Raises EvaluationFailed."""
    why = "network address parse error during conversion from string: "
    try:
        address, bits = _parse_prefix(text)
    except _Unreadable as error:
        raise EvaluationFailed(f"{why}{why}netip.ParsePrefix({quote(text)}): {error}") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationFailed(f"{why}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDR(address, bits)


def _parse_prefix(text: str) -> tuple[Address, int]:
    before, slash, after = text.rpartition("/")
    if not slash:
        raise _Unreadable("no '/'")
    address, zone = _parse(before)
    if zone:
        raise _Unreadable("IPv6 zones cannot be present in a prefix")
    if not (after.isascii() and after.isdigit()) or (len(after) > 1 and after[0] == "0") or len(after) > 18:
        raise _Unreadable(f"bad bits after slash: {quote(after)}")
    if int(after) > address.max_prefixlen:
        raise _Unreadable("prefix length out of range")
    return address, int(after)


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return cidr.network(cidr.bits) == CIDR(ip.address, 0).network(cidr.bits) if _same_family(cidr, ip) else False


def _same_family(cidr: CIDR, other: IP | CIDR) -> bool:
    return cidr.address.version == other.address.version


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        return _contains_ip(cidr, parse_ip(text))
    except EvaluationFailed:
        raise EvaluationFailed("no such overload") from None


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    if not _same_family(cidr, other) or cidr.bits > other.bits:
        return False
    return cidr.network(cidr.bits) == other.network(cidr.bits)


def _masked(cidr: CIDR) -> CIDR:
    spare = cidr.address.max_prefixlen - cidr.bits
    return CIDR(type(cidr.address)(int(cidr.address) >> spare << spare), cidr.bits)


def _is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(ip: IP) -> bool:
    """Private addresses count, as in Go."""
    address = ip.address
    broadcast = address == IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


NETWORK = (
    row(
        "string_to_ip",
        "ip(string) IP",
        parse_ip,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row("ip_family", "IP -> family() int", lambda ip: ip.address.version, named_cost=True),
    row(
        "ip_is_canonical",
        "ip.isCanonical(string) bool",
        lambda text: str(parse_ip(text)) == text,
        cost=costs.double_traversal,
        named_cost=True,
        estimate=costs.double_traversal_estimate,
    ),
    row("ip_is_unspecified", "IP -> isUnspecified() bool", lambda ip: ip.address.is_unspecified),
    row("ip_is_loopback", "IP -> isLoopback() bool", lambda ip: ip.address.is_loopback),
    row("ip_is_link_local_multicast", "IP -> isLinkLocalMulticast() bool", _is_link_local_multicast),
    row("ip_is_link_local_unicast", "IP -> isLinkLocalUnicast() bool", lambda ip: ip.address.is_link_local),
    row("ip_is_global_unicast", "IP -> isGlobalUnicast() bool", _is_global_unicast),
    row(
        "is_ip",
        "isIP(string) bool",
        is_reading(parse_ip),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row("ip_to_string", "string(IP) string", str),
    row(
        "string_to_cidr",
        "cidr(string) CIDR",
        parse_cidr,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row(
        "cidr_contains_ip_string",
        "CIDR -> containsIP(string) bool",
        _contains_ip_text,
        cost=costs.contains_address_text,
        named_cost=True,
        estimate=costs.contains_address_text_estimate,
    ),
    row(
        "cidr_contains_ip_ip",
        "CIDR -> containsIP(IP) bool",
        _contains_ip,
        cost=costs.contains_address,
        named_cost=True,
        estimate=costs.contains_address_estimate,
    ),
    row(
        "cidr_contains_cidr_string",
        "CIDR -> containsCIDR(string) bool",
        lambda cidr, text: _contains_cidr(cidr, parse_cidr(text)),
        cost=costs.contains_range_text,
        named_cost=True,
        estimate=costs.contains_range_text_estimate,
    ),
    row(
        "cidr_contains_cidr",
        "CIDR -> containsCIDR(CIDR) bool",
        _contains_cidr,
        cost=costs.contains_range,
        named_cost=True,
        estimate=costs.contains_range_estimate,
    ),
    row("cidr_ip", "CIDR -> ip() IP", lambda cidr: IP(cidr.address)),
    row("cidr_prefix_length", "CIDR -> prefixLength() int", lambda cidr: cidr.bits),
    row("cidr_masked", "CIDR -> masked() CIDR", _masked),
    row(
        "is_cidr",
        "isCIDR(string) bool",
        is_reading(parse_cidr),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.traversal_estimate,
    ),
    row("cidr_to_string", "string(CIDR) string", str),
)
