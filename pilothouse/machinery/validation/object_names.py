"""Rules for object names and for the prefixes of generated names: upstream's NameIs… functions.

Every check returns messages, none for a valid name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_long_name

ValidateName: TypeAlias = Callable[[str, bool], list[str]]
"""Checks a name; with True, the prefix of generated names."""


def is_valid_path_segment_name(name: str) -> list[str]:
    """Check a name that is used as one segment of a URL path."""
    if "/" not in name and "%" not in name and name not in (".", ".."):  # the common case
        return []
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return is_valid_path_segment_prefix(name)


def is_valid_path_segment_prefix(name: str) -> list[str]:
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in name]


def name_is_dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_subdomain(_without_trailing_dash(name) if prefix else name)


def name_is_long_name(name: str, prefix: bool = False) -> list[str]:
    """Check a DNS subdomain as upstream's declarative validation does: the length is counted in bytes."""
    return is_long_name(_without_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_label(_without_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1035_label(_without_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool = False) -> list[str]:
    return is_valid_path_segment_prefix(name) if prefix else is_valid_path_segment_name(name)


def _without_trailing_dash(name: str) -> str:
    """Replace the last two characters of a prefix that ends with a dash, as upstream does: a suffix will follow."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name
