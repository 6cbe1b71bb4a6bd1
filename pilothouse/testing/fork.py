"""A server on a copy of what another has, while that runs on."""

from __future__ import annotations

import asyncio
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


@asynccontextmanager
async def fork(home: Home, *, process: bool) -> AsyncIterator[API]:
    """Raises ValueError, StartError."""
    from pilothouse.controlplane.data_dir import copy_data_dir

    if home.flags.get("etcd_servers"):
        raise ValueError("objects in etcd belong to all of its servers: only the embedded store can be copied")
    flags = {name: value for name, value in home.flags.items() if name not in _OF_THEIR_OWN}
    with TemporaryDirectory(prefix="pilothouse-fork-") as folder:
        data_dir = Path(folder) / "data"
        await asyncio.to_thread(copy_data_dir, home.data_dir, data_dir)
        async with server(data_dir=data_dir, process=process, **flags) as api:
            yield api
