"""The lock of an election: one Lease, written with its resourceVersion so that two writers never both succeed."""

from __future__ import annotations

import socket
import uuid

from pilothouse.client.leaderelection.record import LeaderElectionRecord
from pilothouse.client.rest.client import Client
from pilothouse.machinery.objects import Json


def new_identity() -> str:
    """Return a name that no other candidate has, not even an earlier one of this host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaseLock:
    """The Lease that candidates compete for, as one of them sees it.

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
        """Return the lease's namespace and name, for logs."""
        return f"{self.namespace}/{self.name}"

    async def get(self) -> LeaderElectionRecord:
        """Raises NotFound."""
        self._lease = await self._leases.get(self.name)
        return LeaderElectionRecord.from_spec(self._lease.get("spec") or {})

    async def create(self, record: LeaderElectionRecord) -> None:
        """Raises AlreadyExists."""
        self._lease = await self._leases.create(
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": record.to_spec(),
            }
        )

    async def update(self, record: LeaderElectionRecord) -> None:
        """Raises Conflict when someone else wrote since the last `get`."""
        if self._lease is None:
            raise RuntimeError("lease not initialized, call get or create first")
        self._lease = await self._leases.update({**self._lease, "spec": record.to_spec()})
