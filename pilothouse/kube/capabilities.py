"""The capabilities that this server grants to pods. Set once at start, from its flags, and the same for every group."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class Capabilities:
    allow_privileged: bool = False


CAPABILITIES = Capabilities()
