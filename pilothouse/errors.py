"""Every error that the library raises: `except PilothouseError` catches them all.

The public names are those in `errors.pyi`.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
