"""All that plugins may ask."""

from __future__ import annotations

from dataclasses import field
from random import Random

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.client import Client
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import labels_of
from pilothouse.scheduler.cache.cache import Cache
from pilothouse.scheduler.cache.nominator import Nominator


@dataclass(frozen=True, slots=True)
class Listers:
    """The caches of the objects that say something about where pods can be."""

    namespaces: Indexer = field(default_factory=Indexer)
    services: Indexer = field(default_factory=Indexer)
    replication_controllers: Indexer = field(default_factory=Indexer)
    replica_sets: Indexer = field(default_factory=Indexer)
    stateful_sets: Indexer = field(default_factory=Indexer)
    disruption_budgets: Indexer = field(default_factory=Indexer)
    claims: Indexer = field(default_factory=Indexer)
    volumes: Indexer = field(default_factory=Indexer)
    storage_classes: Indexer = field(default_factory=Indexer)
    csi_nodes: Indexer = field(default_factory=Indexer)
    csi_drivers: Indexer = field(default_factory=Indexer)
    csi_storage_capacities: Indexer = field(default_factory=Indexer)
    volume_attachments: Indexer = field(default_factory=Indexer)
    pods: Indexer = field(default_factory=Indexer)


@dataclass(frozen=True, slots=True)
class Handle:
    cache: Cache = field(default_factory=Cache)
    nominator: Nominator = field(default_factory=Nominator)
    listers: Listers = field(default_factory=Listers)
    client: Client | None = None
    """None where nothing is to be written."""
    clock: Clock = REAL_CLOCK
    random: Random = field(default_factory=Random)

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        return labels_of(self.listers.namespaces.get_by_key(namespace) or {})
