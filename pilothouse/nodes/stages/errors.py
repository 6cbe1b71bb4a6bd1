"""Errors of stages."""

from __future__ import annotations


class InvalidStage(ValueError):
    """Unsupported or invalid stage; the message names the part and the reason."""
