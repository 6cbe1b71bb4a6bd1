"""Traces: whether requests are traced, and where that is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import STRING, flag

if TYPE_CHECKING:
    from pilothouse.controlplane.tracing import TracingConfiguration


@dataclass(frozen=True)
class TracingOptions:
    title: ClassVar[str] = "traces"

    config_file: str = flag(
        "tracing-config-file", STRING, "", "A TracingConfiguration: send traces of requests to a collector."
    )

    @property
    def configuration(self) -> TracingConfiguration | None:
        """None without a file. Raises ValueError."""
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
