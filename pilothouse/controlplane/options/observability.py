"""Options of logs and traces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import INT, STRING, flag

if TYPE_CHECKING:
    from pilothouse.controlplane.tracing import TracingConfiguration


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


@dataclass(frozen=True)
class TracingOptions:
    title: ClassVar[str] = "traces"

    config_file: str = flag(
        "tracing-config-file", STRING, "", "A TracingConfiguration: send traces of requests to a collector."
    )

    @property
    def configuration(self) -> TracingConfiguration | None:
        """Tracing configuration; None without a file. Raises ValueError."""
        if not self.config_file:
            return None
        from pilothouse.controlplane.tracing import ensure_installed, read_tracing_configuration

        ensure_installed()
        return read_tracing_configuration(self.config_file)

    def validate(self) -> Iterator[str]:
        if self.config_file and not os.path.exists(self.config_file):
            yield f"tracing-config-file {self.config_file} does not exist"
            return
        try:
            _ = self.configuration
        except ValueError as error:
            yield str(error)
