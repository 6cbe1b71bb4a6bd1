"""Collections with a limit: one that is too large is refused without a look at its entries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.field import Errors, Path, duplicate, too_many

Check: TypeAlias = Callable[[Any, Path], Errors]
Key: TypeAlias = Callable[[Any], Hashable]

UNLIMITED = -1

_SHORTEST_SHOWN_KEY = 16


def validate_slice(values: Sequence[Any], limit: int, check: Check, path: Path) -> Errors:
    if 0 <= limit < len(values):
        yield too_many(path, len(values), limit)
        return
    for position, value in enumerate(values):
        yield from check(value, path.index(position))


def validate_set(
    values: Sequence[Any], limit: int, check: Check, *, path: Path, key: Key = lambda value: value, shown: Key = str
) -> Errors:
    """Check each entry, then that none occurs twice; `shown` returns a key as the message shows it."""
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
    """A long key without its middle."""
    limit = max(limit, _SHORTEST_SHOWN_KEY)
    if len(text) <= limit:
        return text
    remaining = limit - 3
    return text[: (remaining + 1) // 2] + "..." + text[len(text) - remaining // 2 :]
