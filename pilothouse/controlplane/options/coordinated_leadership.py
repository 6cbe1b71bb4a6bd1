"""Coordinated leadership: how servers agree on the one that elects the leaders of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import DURATION, flag


@dataclass(frozen=True)
class CoordinatedLeadershipOptions:
    title: ClassVar[str] = "coordinated leadership"

    lease_duration: float = flag(
        "coordinated-leadership-lease-duration",
        DURATION,
        15.0,
        "How long the lease of the server that elects leaders lasts, with the gate CoordinatedLeaderElection.",
    )
    renew_deadline: float = flag(
        "coordinated-leadership-renew-deadline", DURATION, 10.0, "How long that server tries to renew its lease."
    )
    retry_period: float = flag(
        "coordinated-leadership-retry-period", DURATION, 2.0, "How long servers wait between attempts at that lease."
    )

    def validate(self) -> Iterator[str]:
        duration, deadline, period = (
            f"--coordinated-leadership-{name}" for name in ("lease-duration", "renew-deadline", "retry-period")
        )
        if self.lease_duration <= self.renew_deadline:
            yield f"{duration} must be greater than {deadline}"
        if self.renew_deadline <= self.retry_period:
            yield f"{deadline} must be greater than {period}"
