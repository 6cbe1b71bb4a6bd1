"""The suite's etcd: one for the whole run, emptied for each test. Its revision goes on from test to test."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path

from etcd_process import EtcdProcess

from pilothouse.apiserver.storage.etcd.store import EtcdStore


@cache
def shared_etcd() -> EtcdProcess:
    scratch = tempfile.TemporaryDirectory(prefix="etcd-")
    etcd = EtcdProcess(Path(scratch.name))
    atexit.register(scratch.cleanup)
    atexit.register(etcd.kill)
    etcd.start()
    return etcd


def emptied_etcd() -> str:
    """Its URL."""
    etcd = shared_etcd()
    etcd.delete_all()
    return etcd.url


async def connect(url: str) -> EtcdStore:
    return await EtcdStore.connect([url], compaction_interval=0)
