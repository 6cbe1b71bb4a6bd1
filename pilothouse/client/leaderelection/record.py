"""The record of an election in a Lease."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from pilothouse.client.clock import micro_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionRecord:
    """Times are seconds since 1970 by the holder's clock, so nobody else relies on them."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: float = 0.0
    renew_time: float = 0.0
    leader_transitions: int = 0
    rest: Json = field(default_factory=dict, compare=False)
    """The other fields of the spec (strategy, preferredHolder), which are written back as they were."""

    def to_spec(self) -> Json:
        return {
            **self.rest,
            "holderIdentity": self.holder_identity,
            "leaseDurationSeconds": self.lease_duration_seconds,
            "acquireTime": micro_time(self.acquire_time) if self.acquire_time else None,
            "renewTime": micro_time(self.renew_time),
            "leaseTransitions": self.leader_transitions,
        }

    @classmethod
    def from_spec(cls, spec: Json) -> LeaderElectionRecord:
        return cls(
            holder_identity=spec.get("holderIdentity") or "",
            lease_duration_seconds=spec.get("leaseDurationSeconds") or 0,
            acquire_time=_seconds(spec.get("acquireTime")),
            renew_time=_seconds(spec.get("renewTime")),
            leader_transitions=spec.get("leaseTransitions") or 0,
            rest={key: value for key, value in spec.items() if key not in _FIELDS},
        )


_FIELDS = {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
