"""A whole server in this process for our own tests, in which nothing moves but what a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pilothouse.apiserver import SqliteStore
from pilothouse.client import Json
from pilothouse.testing import API, server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUIET = {"controllers": "-*", "disable_admission_plugins": "ServiceAccount"}
"""No controller makes the accounts that pods run as."""


@asynccontextmanager
async def whole_server(data_dir: Path | None = None, **flags: Any) -> AsyncIterator[API]:
    async with server(data_dir=data_dir, **{**QUIET, **flags}) as api:
        yield api


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
