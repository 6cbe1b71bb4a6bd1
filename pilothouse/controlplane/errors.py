"""The error of a server that cannot start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StartFailed(Exception):
    """The server could not start, or a hook that it can not do without failed. The message is for people."""


@contextmanager
def start_failures(*expected: type[Exception]) -> Iterator[None]:
    """Raise StartFailed, in words for people, for an OSError and for whatever else a start is `expected` to raise."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise StartFailed(f"{where}{error.strerror or error}") from error
    except expected as error:
        raise StartFailed(str(error)) from error
