"""The contract of review webhooks: a review object is posted, and returned with a status.

Status fields are type-checked: the string `"false"` is true in Python.
"""

from __future__ import annotations

from typing import Any, Protocol

from pilothouse.machinery.objects import Json


class ReviewFailed(Exception):
    """The review failed after all retries. `timed_out`: whether the timeout expired."""

    def __init__(self, text: str, *, code: int = 0, timed_out: bool = False) -> None:
        super().__init__(text)
        self.code = code
        """Status code of the last HTTP response; 0 without a response."""
        self.timed_out = timed_out


class ReviewWebhook(Protocol):
    async def review(self, review: Json) -> Json:
        """Post the review and return the response. Raises ReviewFailed."""


def checked_status(answer: Json, **types: type) -> Json:
    """Return the status of a review. Raises ReviewFailed if a field does not have the type in `types`."""
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
