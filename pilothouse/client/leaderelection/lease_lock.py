"""LeaseLock: the Lease of an election. Writes carry the resourceVersion, so that concurrent writers cannot both
succeed."""

from __future__ import annotations

import socket
import uuid
from dataclasses import field
from datetime import datetime

from pilothouse.client.clock import micro_time
from pilothouse.client.rest.client import Client
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


def new_identity() -> str:
    """Return an identity that is unique among all candidates, past and present."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaseLock:
    """Lease that candidates compete for, from the view of one candidate.

    >>> from pilothouse.client import LeaseLock
    >>> LeaseLock(client, namespace="default", name="my-controller", identity="me").identity
    'me'
    """

    def __init__(self, client: Client, *, namespace: str, name: str, identity: str) -> None:
        if not identity:
            raise ValueError("lock identity is empty")
        self.identity = identity
        self.namespace = namespace
        self.name = name
        self._leases = client.resource("coordination.k8s.io/v1", "leases", namespace=namespace)
        self._lease: Json | None = None

    @property
    def description(self) -> str:
        """Namespace and name of the lease, for logs."""
        return f"{self.namespace}/{self.name}"

    async def get(self) -> LeaderElectionRecord:
        """Read the record. Raises NotFound."""
        self._lease = await self._leases.get(self.name)
        return LeaderElectionRecord.from_spec(self._lease.get("spec") or {})

    async def create(self, record: LeaderElectionRecord) -> None:
        """Create the lease. Raises AlreadyExists."""
        self._lease = await self._leases.create(
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": record.to_spec(),
            }
        )

    async def update(self, record: LeaderElectionRecord) -> None:
        """Write the record. Raises Conflict after a concurrent write since the last `get`."""
        if self._lease is None:
            raise RuntimeError("lease not initialized, call get or create first")
        self._lease = await self._leases.update({**self._lease, "spec": record.to_spec()})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionRecord:
    """Election record in a Lease. Times are seconds since the epoch on the holder's clock; other candidates ignore
    them."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: float = 0.0
    renew_time: float = 0.0
    leader_transitions: int = 0
    rest: Json = field(default_factory=dict, compare=False)
    """Other fields of the spec (strategy, preferredHolder), written back unchanged."""

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
