"""Tagged times, which become RFC 3339 strings where nobody says what they are for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import modf

from pilothouse.machinery.cbor.wellformed import CborError
from pilothouse.machinery.schema.gotime import TimeError, canonical_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNSHOWN = (
    "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
    "Time.MarshalText: year outside of range [0,9999]"
)


def rfc3339(value: str | int | float) -> str:
    """Return the time as text, in UTC if it was a number of seconds. Raises CborError."""
    return _checked(value) if isinstance(value, str) else _since_epoch(value)


def _checked(text: str) -> str:
    try:
        canonical_time(text)
    except TimeError as error:
        raise CborError(f"cbor: cannot set {text} for time.Time: {error}") from None
    return text


def _since_epoch(number: int | float) -> str:
    fraction, whole = modf(number) if isinstance(number, float) else (0.0, number)
    seconds, nanoseconds = divmod(int(whole) * 10**9 + int(fraction * 1e9), 10**9)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise CborError(_UNSHOWN) from None
    digits = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{digits}Z"
