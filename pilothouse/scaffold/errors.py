"""What keeps a command of the scaffold from doing anything."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class ScaffoldError(PilothouseError):
    """Nothing was written. The message says what is wrong and what to do instead."""
