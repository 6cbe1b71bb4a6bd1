"""`etcd` is a member of its own, to be killed; `shared` is the URL of one that is not, emptied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from etcd_backend import connect, emptied_etcd
from etcd_process import EtcdProcess

from pilothouse.apiserver.storage.etcd.client import EtcdClient, EtcdEndpoint, EtcdTlsFiles
from pilothouse.apiserver.storage.etcd.store import EtcdStore


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    member = EtcdProcess(tmp_path)
    member.start()
    yield member
    member.kill()


@pytest.fixture
def shared() -> str:
    return emptied_etcd()


@pytest.fixture
async def etcd_store(shared: str) -> AsyncIterator[EtcdStore]:
    store = await connect(shared)
    yield store
    await store.close()


@pytest.fixture
async def client(shared: str) -> AsyncIterator[EtcdClient]:
    client = EtcdClient([EtcdEndpoint(shared, EtcdTlsFiles())])
    yield client
    await client.close()
