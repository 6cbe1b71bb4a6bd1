"""Egress selector: by which way other servers are reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import content, missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import STRING, flag


@dataclass(frozen=True)
class EgressSelectorOptions:
    title: ClassVar[str] = "egress selector"

    config_file: str = flag(
        "egress-selector-config-file",
        STRING,
        "",
        "An EgressSelectorConfiguration. Only direct connections are there; proxies are refused.",
    )

    @property
    def selections(self) -> frozenset[str] | None:
        """The networks that the file speaks of; None without one. Raises OSError, ValueError."""
        if not self.config_file:
            return None
        from pilothouse.controlplane.egress import read_egress_selections

        return read_egress_selections(content(self.config_file))

    def validate(self) -> Iterator[str]:
        problems = [*missing_files({"egress-selector-config-file": self.config_file})]
        yield from problems
        if not problems:
            try:
                _ = self.selections
            except ValueError as error:
                yield f"failed to read egress selector configuration: {error}"
