"""Time zones by the names of the IANA database, as Go looks them up."""

from __future__ import annotations

import re
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.field import Errors, Path, invalid

_NAME_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class TimeZoneError(ValueError):
    """The message is Go's."""


def load_location(name: str) -> tzinfo | None:
    """Return the zone; None for the machine's own. Raises TimeZoneError for a name that stands for no time zone."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return None
    if ".." in name or name[0] in "/\\":
        raise TimeZoneError("time: invalid location name")
    if not _exists(name):
        raise TimeZoneError(f"unknown time zone {name}")
    return ZoneInfo(name)


def validate_time_zone(name: str | None, path: Path) -> Errors:
    if name is None:
        return
    if not name:
        yield invalid(path, name, "timeZone must be nil or non-empty string")
        return
    if not all(map(_is_name_part, name.split("/"))):
        yield invalid(path, name, f"unknown time zone {name}")
        return
    if name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, name, why)
    try:
        load_location(name)
    except TimeZoneError as error:
        yield invalid(path, name, str(error))


def _is_name_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and bool(_NAME_PART.fullmatch(part))


@bounded_cache(entries=256, key_bytes=64)
def _exists(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return False
    return True
