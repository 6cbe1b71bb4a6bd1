"""Error of a server that cannot start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StartFailed(Exception):
    """The server could not start, or a required hook failed. The message is for users."""


@contextmanager
def start_failures(*expected: type[Exception]) -> Iterator[None]:
    """Map OSError and the `expected` exceptions to StartFailed."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise StartFailed(f"{where}{error.strerror or error}") from error
    except expected as error:
        raise StartFailed(str(error)) from error
