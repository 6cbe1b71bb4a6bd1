"""Logs: how much is written, and in which form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import INT, STRING, flag

FORMATS = ("json", "text")


@dataclass(frozen=True)
class LogsOptions:
    title: ClassVar[str] = "logs"

    logging_format: str = flag("logging-format", STRING, "text", f"The form of the log: {' or '.join(FORMATS)}.")
    verbosity: int = flag("v", INT, 0, "How much to log: 0 little, 10 everything.", shorthand="v")

    def validate(self) -> Iterator[str]:
        if self.logging_format not in FORMATS:
            yield f'logging-format: Invalid value: "{self.logging_format}": Unsupported log format'
        if self.verbosity < 0:
            yield f"v: Invalid value: {self.verbosity}: must not be negative"
