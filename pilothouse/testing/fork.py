"""A server on a copy of what another has, while that runs on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pilothouse.testing.home import Home
from pilothouse.testing.running import server

if TYPE_CHECKING:
    from pilothouse.testing.api import API

_OF_THEIR_OWN = {"data_dir", "secure_port", "kubeconfig_out"}
"""Flags that no two servers can share."""
_STORE = "store"


@asynccontextmanager
async def fork(home: Home, *, process: bool) -> AsyncIterator[API]:
    """Raises ValueError, StartError."""
    if home.flags.get("etcd_servers"):
        raise ValueError("objects in etcd belong to all of its servers: only the embedded store can be copied")
    flags = {name: value for name, value in home.flags.items() if name not in _OF_THEIR_OWN}
    with TemporaryDirectory(prefix="pilothouse-fork-") as folder:
        data_dir = Path(folder) / "data"
        await asyncio.to_thread(_copy, home.data_dir, data_dir)
        async with server(data_dir=data_dir, process=process, **flags) as api:
            yield api


def _copy(source: Path, target: Path) -> None:
    """Certificates and keys as they are, the store as it is at one moment."""
    from pilothouse.apiserver.storage.sqlite.directory import copy_directory

    shutil.copytree(source, target, ignore=lambda folder, names: {_STORE, "lock"} if Path(folder) == source else set())
    copy_directory(source / _STORE, target / _STORE)
