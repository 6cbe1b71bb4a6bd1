"""Registries on a real embedded store, without a server around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.coordination.leases import LEASES
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.endpoints import ENDPOINTS
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.registries import Registries


@pytest.fixture
async def registries(tmp_path: Path) -> AsyncIterator[Registries]:
    store = await SqliteStore.open(tmp_path / "store")
    opened = Registries(store)
    for resource in (LEASES, CONFIG_MAPS, ENDPOINTS, ENDPOINT_SLICES):
        await opened.open(resource).start()
    yield opened
    for registry in opened.opened:
        await registry.stop()
    await store.close()


@pytest.fixture
def leases(registries: Registries) -> OwnAccess:
    return OwnAccess(registries.open(LEASES))


@pytest.fixture
def config_maps(registries: Registries) -> OwnAccess:
    return OwnAccess(registries.open(CONFIG_MAPS))
