"""Authorization: what they may do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pilothouse.controlplane.flags.declare import flag
from pilothouse.controlplane.flags.values import STRINGS

ALWAYS_ALLOW, ALWAYS_DENY, RBAC = SUPPORTED_MODES = ("AlwaysAllow", "AlwaysDeny", "RBAC")
UNSUPPORTED_MODES = ("ABAC", "Webhook", "Node")


@dataclass(frozen=True)
class AuthorizationOptions:
    title: ClassVar[str] = "authorization"

    modes: tuple[str, ...] = flag(
        "authorization-mode",
        STRINGS,
        (),
        f"Who decides, in this order: {', '.join(SUPPORTED_MODES)}. AlwaysAllow if empty.",
    )

    def validate(self) -> Iterator[str]:
        if not self.modes:
            yield "at least one authorization-mode must be passed"
        for mode in dict.fromkeys(self.modes):
            if mode in UNSUPPORTED_MODES:
                yield f'authorization-mode "{mode}" is not supported by this version'
            elif mode not in SUPPORTED_MODES:
                yield f'authorization-mode "{mode}" is not a valid mode'
        if len(set(self.modes)) < len(self.modes):
            yield f"authorization-mode {list(self.modes)} has mode specified more than once"
