"""A whole server in this process for our own tests, in which nothing moves but what a test moves."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pilothouse.apiserver import SqliteStore
from pilothouse.client import Json
from pilothouse.testing import API, server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUIET: dict[str, Any] = {"controllers": "-*", "disable_admission_plugins": "ServiceAccount"}
"""No controller makes the accounts that pods run as."""


OF_THEIR_OWN = {"bind_address", "encryption_provider_config", "etcd_prefix", "etcd_servers", "service_cluster_ip_range"}
"""Flags that a server must have had from its first start."""

_TEMPLATES = TemporaryDirectory(prefix="pilothouse-tests-")


@asynccontextmanager
async def whole_server(data_dir: Path | None = None, **flags: Any) -> AsyncIterator[API]:
    """Without a data directory the server finds one in which another of these has started before: it has its
    certificates and what every server makes at its first start, which takes longer than most tests do."""
    with TemporaryDirectory(prefix="pilothouse-test-") as folder:
        if data_dir is None and OF_THEIR_OWN.isdisjoint(flags):
            data_dir = Path(folder) / "data"
            shutil.copytree(await _template(), data_dir)
        async with server(data_dir=data_dir, **{**QUIET, **flags}) as api:
            yield api


async def _template() -> Path:
    path = Path(_TEMPLATES.name) / "data"
    if not path.exists():
        async with server(data_dir=path, **QUIET):
            pass
    return path


@asynccontextmanager
async def store_of(data_dir: Path) -> AsyncIterator[SqliteStore]:
    """What a server that is not running has stored, or will find."""
    store = await SqliteStore.open(data_dir / "store")
    try:
        yield store
    finally:
        await store.close()


async def create_config_map(api: API, name: str, namespace: str = "default", **fields: Any) -> Json:
    """Create a ConfigMap; `metadata` among the fields is merged into its metadata."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}
    answer = await api.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", obj)
    assert answer.status == 201, answer.body
    created: Json = answer.json
    return created
