"""String formats of schemas. Unknown formats are ignored, as upstream."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from email.errors import HeaderParseError
from email.headerregistry import Address
from typing import TypeAlias

from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.validation.addresses import parse_cidr_sloppy, parse_ip_sloppy

Format: TypeAlias = Callable[[str], bool]


def format_check(name: str) -> Format | None:
    return _FORMATS.get(name.replace("-", ""))


def _matches(pattern: str, flags: int = 0) -> Format:
    compiled = re.compile(pattern, re.ASCII | flags)
    return lambda text: compiled.fullmatch(text) is not None


_LABEL_END = re.compile(r"[a-zA-Z0-9]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_AMOUNT = re.compile(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]+)")
_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_PREFIXES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_NAMED_ADDRESS = re.compile(r"\s*+(?:\"(?:[^\"\\]|\\.)*+\"\s*+|[^<>@\",;:]*+)<([^<>]++)>\s*+")
_LONGEST_ADDRESS = 320
"""SMTP's limit; also bounds the recursion of the parser, which recurses per parenthesis."""
_REQUEST_URI = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:.*|/.*)", re.DOTALL)
_BAD_IN_URI = re.compile(r"[\x00-\x20\x7f]|%(?![0-9a-fA-F]{2})")
_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOUR_PART = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        # Go has a year 0, a leap year like 2000.
        date.fromisoformat(text if text[:4] != "0000" else f"2000{text[4:]}")
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    """Return whether the text is a duration in Go's notation or in Scala's: `22 ns`, `3 hours`."""
    try:
        parse_duration(text)
    except DurationError:
        units = [match[2].lower() for match in _AMOUNT.finditer(text)]
        return any(unit in _UNITS or unit.startswith(_UNIT_PREFIXES) for unit in units)
    return True


def _is_email(text: str) -> bool:
    """Return whether the text is an address, optionally with a display name: `Ann <ann@example.com>`."""
    named = _NAMED_ADDRESS.fullmatch(text)
    address = named[1] if named else text.strip()
    if len(address) > _LONGEST_ADDRESS:
        return False
    try:
        return bool(Address(addr_spec=address).domain)
    except (ValueError, IndexError, AttributeError, HeaderParseError):
        # The library raises many kinds of errors for invalid addresses.
        return False


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if len(text.encode()) > 255 or any(not 0 < len(label.encode()) <= 63 for label in labels):
        return False
    if len(labels) > 1 and not (len(labels[-1]) >= 2 and all(map(_is_letter, labels[-1]))):
        return False
    return all(map(_is_host_label, labels if len(labels) == 1 else labels[:-1]))


def _is_host_label(label: str) -> bool:
    return _is_host_sign(label[0]) and _is_host_sign(label[-1]) and all(_is_host_sign(c) or c == "-" for c in label)


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith("L")


def _is_host_sign(char: str) -> bool:
    return bool(_LABEL_END.match(char)) or unicodedata.category(char)[0] in "LS"


def _is_uri(text: str) -> bool:
    """Return whether Go's url.ParseRequestURI accepts the text: an absolute URI or an absolute path."""
    return _REQUEST_URI.fullmatch(text) is not None and not _BAD_IN_URI.search(text)


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    doubled = [int(digit) * (1 + position % 2) for position, digit in enumerate(reversed(digits))]
    return _CARD.fullmatch(digits) is not None and sum(n // 10 + n % 10 for n in doubled) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((position + 1) * (10 if digit == "X" else int(digit)) for position, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if position % 2 else 1) for position, digit in enumerate(digits)) % 10 == 0


_SHORT_NAME = _matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONG_NAME = _matches(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HEX = "[0-9a-f]"

_FORMATS: Mapping[str, Format] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}", re.IGNORECASE),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and parse_ip_sloppy(text) is not None,
    "ipv6": lambda text: ":" in text and parse_ip_sloppy(text) is not None,
    "cidr": lambda text: parse_cidr_sloppy(text) is not None,
    "mac": _matches(
        rf"({_HEX}{{2}}([:-]))({_HEX}{{2}}\2){{4}}{_HEX}{{2}}|({_HEX}{{2}}([:-]))({_HEX}{{2}}\5){{6}}{_HEX}{{2}}"
        rf"|({_HEX}{{2}}([:-]))({_HEX}{{2}}\8){{18}}{_HEX}{{2}}|({_HEX}{{4}}\.){{2}}{_HEX}{{4}}"
        rf"|({_HEX}{{4}}\.){{3}}{_HEX}{{4}}|({_HEX}{{4}}\.){{9}}{_HEX}{{4}}",
        re.IGNORECASE,
    ),
    "uuid": _matches(f"{_HEX}{{8}}-?({_HEX}{{4}}-?){{3}}{_HEX}{{12}}", re.IGNORECASE),
    "uuid3": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid4": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid5": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOUR_PART},{_COLOUR_PART},{_COLOUR_PART}\)"),
    "byte": _matches(
        r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    ),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT_NAME(text),
    "k8slongname": lambda text: len(text) <= 253 and _LONG_NAME(text),
}
