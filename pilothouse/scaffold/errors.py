"""The error of the scaffold's commands."""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class ScaffoldError(PilothouseError):
    """Nothing was written. The message names the problem and the next step."""
