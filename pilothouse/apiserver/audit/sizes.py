"""Default size limits of audit events. Imported by the options, so this module has no imports."""

from __future__ import annotations

from typing import Final

MAX_EVENT: Final = 100 * 1024
MAX_BATCH: Final = 10 * 1024 * 1024
