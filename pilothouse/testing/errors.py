"""The error of a server that does not start."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class StartError(PilothouseError):
    """The server did not start. The message lists all invalid flags, or the reason.

    >>> from pilothouse.testing import Server, StartError
    >>> try:
    ...     Server(authorization_mode="Nobody").start()
    ... except StartError as error:
    ...     print(error)
    authorization-mode "Nobody" is not a valid mode
    """
