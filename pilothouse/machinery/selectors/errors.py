"""Why a selector was refused."""

from __future__ import annotations


class InvalidSelector(ValueError):
    """The text or object is no selector; the message is upstream's and fit for a BadRequest."""
