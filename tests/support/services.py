"""The storage of services on a real embedded store, with its watch caches running and without a server around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules import decoded

from pilothouse.apiserver import HookContext, SqliteStore, Store
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import PostStartEntry, run_post_start_hooks
from pilothouse.client import Json, name_of
from pilothouse.kube.core.services.network import ServiceNetwork
from pilothouse.kube.core.services.portallocator import PortAllocator
from pilothouse.kube.core.services.resource import SERVICES
from pilothouse.kube.core.services.storage import ServiceStorage
from pilothouse.kube.networking.ip_addresses import IP_ADDRESSES
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS
from pilothouse.kube.registries import Registries


@dataclass(frozen=True, slots=True)
class Cluster:
    storage: ServiceStorage
    services: OwnAccess
    addresses: OwnAccess
    cidrs: OwnAccess
    ports: PortAllocator
    store: Store

    async def create(self, name: str, **spec: Any) -> Json:
        await self.services.create(new_service(name, **spec))
        made = await self.services.get(name, namespace="default")
        assert made is not None
        return made

    async def taken_addresses(self) -> list[str]:
        return sorted(name_of(address) for address in await self.addresses.list())

    async def taken_ports(self) -> list[int]:
        return list((await self.ports.snapshot()).taken)


def new_service(name: str, **spec: Any) -> Json:
    obj = {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}
    return decoded(SERVICES, obj)


@asynccontextmanager
async def service_cluster(folder: Path, network: ServiceNetwork) -> AsyncIterator[Cluster]:
    """`folder` can be used again, one after the other: that is a restart."""
    store = await SqliteStore.open(folder)
    registries = Registries(store)
    storage = ServiceStorage.open(registries, network)
    await registries.start()
    context = HookContext()
    hooks = [PostStartEntry(name, hook) for name, hook in storage.post_start_hooks.items()]
    await run_post_start_hooks(hooks, context)
    try:
        yield _cluster(storage, registries, network)
    finally:
        await context.stop()
        await registries.stop()
        await store.close()


def _cluster(storage: ServiceStorage, registries: Registries, network: ServiceNetwork) -> Cluster:
    return Cluster(
        storage,
        services=OwnAccess(storage.registry),
        addresses=OwnAccess(registries.open(IP_ADDRESSES)),
        cidrs=OwnAccess(registries.open(SERVICE_CIDRS)),
        ports=PortAllocator(registries.store, network.node_ports),
        store=registries.store,
    )
