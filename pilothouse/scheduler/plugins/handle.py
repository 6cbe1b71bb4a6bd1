"""The Handle: the services available to plugins."""

from __future__ import annotations

from dataclasses import field
from random import Random

from pilothouse.client.cache.indexer import NAMESPACE_INDEX, Indexer, namespace_index
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import Client
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import labels_of
from pilothouse.scheduler.cache.cache import Cache, Nominator


def _empty() -> Indexer:
    return Indexer({NAMESPACE_INDEX: namespace_index})


@dataclass(frozen=True, slots=True)
class Listers:
    """Informer caches of the objects that influence placement."""

    namespaces: Indexer = field(default_factory=_empty)
    services: Indexer = field(default_factory=_empty)
    replication_controllers: Indexer = field(default_factory=_empty)
    replica_sets: Indexer = field(default_factory=_empty)
    stateful_sets: Indexer = field(default_factory=_empty)
    disruption_budgets: Indexer = field(default_factory=_empty)
    claims: Indexer = field(default_factory=_empty)
    volumes: Indexer = field(default_factory=_empty)
    storage_classes: Indexer = field(default_factory=_empty)
    csi_nodes: Indexer = field(default_factory=_empty)
    csi_drivers: Indexer = field(default_factory=_empty)
    csi_storage_capacities: Indexer = field(default_factory=_empty)
    volume_attachments: Indexer = field(default_factory=_empty)
    resource_claims: Indexer = field(default_factory=_empty)
    resource_slices: Indexer = field(default_factory=_empty)
    device_classes: Indexer = field(default_factory=_empty)
    pods: Indexer = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class Handle:
    cache: Cache = field(default_factory=Cache)
    nominator: Nominator = field(default_factory=Nominator)
    listers: Listers = field(default_factory=Listers)
    client: Client | None = None
    """None = plugins must not write."""
    clock: Clock = REAL_CLOCK
    random: Random = field(default_factory=Random)
    preempting: set[str] = field(default_factory=set)
    """uids of pods whose victims are being evicted."""

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        return labels_of(self.listers.namespaces.get_by_key(namespace) or {})
