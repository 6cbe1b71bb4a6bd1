"""Capabilities granted to pods. Set once at start from flags."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class Capabilities:
    allow_privileged: bool = False


CAPABILITIES = Capabilities()
