"""The process of the store: opens it, and serves each worker over a socket that the supervisor hands over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.remote.server import StoreSession
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.options.completion import CompletedOptions

_ONE = 1


async def serve_store(
    options: CompletedOptions, control: socket.socket, revisions: SharedRevisions, opened: Callable[[], None]
) -> None:
    """Serve until the supervisor closes its end of `control`, over which the workers' sockets come; return when the
    store is closed. Raises StorageError, OSError."""
    store = await SqliteStore.open(
        Path(options.pilothouse.data_dir) / "store",
        compaction_interval=options.etcd.compaction_interval,
        fsync=not options.etcd.unsafe_no_fsync,
        announce=revisions.announce,
    )
    try:
        opened()
        await _serve_workers(store, control)
    finally:
        await store.close()


async def _serve_workers(store: SqliteStore, control: socket.socket) -> None:
    control.setblocking(False)
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(control, readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            message, descriptors, _, _ = socket.recv_fds(control, _ONE, _ONE)
            if not message:
                return
            await StoreSession(store).open(socket.socket(fileno=descriptors[0]))
    finally:
        loop.remove_reader(control)
