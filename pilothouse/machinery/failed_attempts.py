"""The log record of a failed attempt: one line for errors that a retry expects, a traceback for bugs only."""

from __future__ import annotations

import logging

from pilothouse.machinery.errors import AlreadyExists, Conflict, Forbidden, NotFound
from pilothouse.machinery.status_error import NAMESPACE_TERMINATING, PilothouseError, has_status_cause


def log_failed_attempt(
    log: logging.Logger, error: BaseException, message: str, *arguments: object, final: bool = False
) -> None:
    """Log an error after which the caller continues, as `message % arguments: error`.

    Expected errors are one line: INFO after a lost race, ERROR if the attempt was `final`, else WARNING. Any other
    error is a bug, and is logged as ERROR with its traceback.

    >>> import logging
    >>> from pilothouse.machinery.failed_attempts import log_failed_attempt
    >>> log_failed_attempt(logging.getLogger("example"), TimeoutError("too slow"), "cannot reach %s", "the server")
    """
    errors = _leaves(error)
    expected = all(isinstance(leaf, (PilothouseError, OSError)) for leaf in errors)
    if final or not expected:
        level = logging.ERROR
    else:
        level = logging.INFO if all(map(_is_lost_race, errors)) else logging.WARNING
    reasons = "; ".join(dict.fromkeys(str(leaf) or type(leaf).__name__ for leaf in errors))
    log.log(level, f"{message}: %s", *arguments, reasons, exc_info=None if expected else error, stacklevel=2)


def _is_lost_race(error: BaseException) -> bool:
    """Report whether another client was faster. The next attempt sees its change."""
    if isinstance(error, Forbidden):
        return has_status_cause(error, NAMESPACE_TERMINATING)
    return isinstance(error, (AlreadyExists, Conflict, NotFound))


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in _leaves(member)]
    return [error]
