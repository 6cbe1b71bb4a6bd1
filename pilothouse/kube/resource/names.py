"""Validation of names of drivers, pools, devices and attributes, and of bounded collections."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from pilothouse.kube.core.pods.validation.network_volumes import validate_csi_driver_name as validate_driver_name
from pilothouse.kube.validation.fields import dns_subdomain, follow
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, too_long, too_many
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation import names

__all__ = ["validate_driver_name"]

MAX_POOL_NAME = 253
MAX_DOMAIN = 63
MAX_ID = 32
MAX_QUALIFIED_NAME = MAX_DOMAIN + 1 + MAX_ID

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

UNLIMITED = -1

_SHORTEST_SHOWN_KEY = 16


def dns_label_name(name: str, path: Path) -> Errors:
    return follow(names.is_dns1123_label, name, path)


def validate_pool_name(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > MAX_POOL_NAME:
        yield too_long(path, MAX_POOL_NAME)
    for part in name.split("/"):
        yield from dns_subdomain(part, path)


def validate_resource_pool_name(name: str, path: Path) -> Errors:
    """Validate like `validate_pool_name`, with the messages of newer kinds, which name the invalid part."""
    if len(name.encode()) > MAX_POOL_NAME:
        yield too_long(path, MAX_POOL_NAME)
    for position, part in enumerate(name.split("/")):
        if not part:
            yield invalid(path, name, f"segment {position}: must not be empty")
        else:
            for message in names.is_dns1123_subdomain(part):
                yield invalid(path, part, f"segment {position}: {message}")


def validate_long_name_caseless(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from follow(names.is_dns1123_subdomain_caseless, name, path)


def validate_class_name(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from dns_subdomain(name, path)


def validate_qualified_name(name: str, path: Path) -> Errors:
    """Validate an identifier with an optional domain. As upstream does, accept several slashes."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _validate_identifier(name, path)
    elif len(parts) == 2:
        domain, identifier = parts
        if not domain:
            yield invalid(path, "", "the domain must not be empty")
        else:
            yield from validate_driver_name(domain, path)
        if not identifier:
            yield invalid(path, "", "the name must not be empty")
        else:
            yield from _validate_identifier(identifier, path)


def validate_fully_qualified_name(name: str, path: Path) -> Errors:
    yield from validate_qualified_name(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def _validate_identifier(text: str, path: Path) -> Errors:
    if len(text.encode()) > MAX_ID:
        yield too_long(path, MAX_ID)
    yield from follow(names.is_c_identifier, text, path)


def validate_uid(text: str, path: Path) -> Errors:
    if problem := _uid_problem(text):
        yield invalid(path, text, f"error validating uid: {problem}")
    elif not _UID.fullmatch(text):
        reason = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`"
        yield invalid(path, text, f"{reason} with lowercase hexadecimal characters")


def _uid_problem(text: str) -> str:
    """Return the problem with a UID, in the words of upstream's library, which recognizes four notations by length."""
    if len(text) not in (32, 36, 38, 45):
        return f"invalid UUID length: {len(text)}"
    if len(text) == 45 and text[:9].lower() != "urn:uuid:":
        return f"invalid urn prefix: {quote(text[:9])}"
    if len(text) == 38 and (text[0], text[-1]) != ("{", "}"):
        return "invalid bracketed UUID format"
    try:
        uuid.UUID(text)
    except ValueError:
        return "invalid UUID format"
    return ""


Check: TypeAlias = Callable[[Any, Path], Errors]

Key: TypeAlias = Callable[[Any], Hashable]


def validate_slice(values: Sequence[Any], limit: int, check: Check, path: Path) -> Errors:
    if 0 <= limit < len(values):
        yield too_many(path, len(values), limit)
        return
    for position, value in enumerate(values):
        yield from check(value, path.index(position))


def validate_set(
    values: Sequence[Any], limit: int, check: Check, *, path: Path, key: Key = lambda value: value, shown: Key = str
) -> Errors:
    """Validate each entry and uniqueness. `shown` formats a key for messages."""
    errors = list(validate_slice(values, limit, check, path))
    yield from errors
    if 0 <= limit < len(values):
        return
    seen: set[Hashable] = set()
    for position, value in enumerate(values):
        if (each := key(value)) in seen:
            yield duplicate(path.index(position), shown(each))
        seen.add(each)


def validate_map(
    values: Mapping[str, Any], limit: int, *, check_key: Check, check: Check, path: Path, shown_length: int
) -> Errors:
    if 0 <= limit < len(values):
        yield too_many(path, len(values), limit)
        return
    for name, value in sorted(values.items()):
        yield from check_key(name, path)
        yield from check(value, path.key(_shortened(name, shown_length)))


def _shortened(text: str, limit: int) -> str:
    """Return a long key without its middle."""
    limit = max(limit, _SHORTEST_SHOWN_KEY)
    if len(text) <= limit:
        return text
    remaining = limit - 3
    return text[: (remaining + 1) // 2] + "..." + text[len(text) - remaining // 2 :]
