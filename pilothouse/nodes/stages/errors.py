"""What can be wrong with a stage."""

from __future__ import annotations


class InvalidStage(ValueError):
    """The stage can not be understood. The message says what in it, and why."""
