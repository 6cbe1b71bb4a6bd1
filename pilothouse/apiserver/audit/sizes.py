"""How much of an event is audited, unless the flags say otherwise. Options read it, so nothing is imported here."""

from __future__ import annotations

from typing import Final

MAX_EVENT: Final = 100 * 1024
MAX_BATCH: Final = 10 * 1024 * 1024
