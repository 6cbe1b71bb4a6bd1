"""Insecure serving: plain HTTP without authentication or authorization, off unless a port is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import flag
from pilothouse.machinery.flags.values import INT, IP


@dataclass(frozen=True)
class InsecureServingOptions:
    title: ClassVar[str] = "insecure serving"

    bind_address: str = flag(
        "insecure-bind-address",
        IP,
        "127.0.0.1",
        "The address to listen on for --insecure-port. Whoever reaches it has every right.",
    )
    port: int = flag(
        "insecure-port", INT, 0, "A port for plain HTTP, without authentication or authorization. 0 turns it off."
    )

    def validate(self) -> Iterator[str]:
        if not 0 <= self.port <= 65535:
            yield f"--insecure-port {self.port} must be between 0 and 65535, inclusive. 0 for turning off insecure port"
