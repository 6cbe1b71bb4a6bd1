"""`store` is an empty store of each kind; `backend` is the place it keeps its data in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from storage_backends import BACKENDS, Backend

from pilothouse.apiserver.storage.interface import Store


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return BACKENDS[request.param].create(tmp_path)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    store = await backend.open()
    yield store
    await store.close()
