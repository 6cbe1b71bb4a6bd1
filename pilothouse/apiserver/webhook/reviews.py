"""The contract of webhooks that answer reviews: what is asked goes out as an object, and comes back with a status.

A status is believed only if its fields have their types. In Python the text `"false"` is true.
"""

from __future__ import annotations

from typing import Any, Protocol

from pilothouse.machinery.objects import Json


class ReviewFailed(Exception):
    """No answer, whatever was tried. `timed_out`: because it took too long."""

    def __init__(self, text: str, *, code: int = 0, timed_out: bool = False) -> None:
        super().__init__(text)
        self.code = code
        """The status of the last HTTP answer; 0 where there was none."""
        self.timed_out = timed_out


class ReviewWebhook(Protocol):
    async def review(self, review: Json) -> Json:
        """Raises ReviewFailed."""


def checked_status(answer: Json, **types: type) -> Json:
    """Return the status of an answered review. Raises ReviewFailed where a field has another type than `types` says."""
    return checked_fields(answer.get("status"), "status", **types)


def checked_fields(value: Any, path: str, **types: type) -> Json:
    """Return the object at `path`; empty for null. Raises ReviewFailed."""
    if value is None:
        return {}
    _check_type(value, path, dict)
    for name, expected in types.items():
        if (found := value.get(name)) is not None:
            _check_type(found, f"{path}.{name}", expected)
    fields: Json = value
    return fields


def checked_texts(value: Any, path: str) -> tuple[str, ...]:
    """Return the list of strings at `path`; empty for null. Raises ReviewFailed."""
    if value is None:
        return ()
    _check_type(value, path, list)
    for text in value:
        _check_type(text, f"an item of {path}", str)
    return tuple(value)


def _check_type(value: Any, path: str, expected: type) -> None:
    if not isinstance(value, expected):
        raise ReviewFailed(f"the webhook's answer is invalid: {path} is of type {type(value).__name__}")
