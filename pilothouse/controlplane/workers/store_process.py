"""The process of the store: opens it, and serves each worker over a socket that the supervisor hands over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.remote.server import StoreSession
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.storage import open_bare_store

_ONE = 1


async def serve_store(
    options: CompletedOptions, control: socket.socket, revisions: SharedRevisions, opened: Callable[[], None]
) -> None:
    """Serve until the supervisor closes its end of `control`, over which the workers' sockets come; return when the
    store is closed. Raises StorageError, OSError."""
    data_dir, timeout = Path(options.pilothouse.data_dir), options.generic.storage_initialization_timeout
    store = await open_bare_store(options.etcd, data_dir, timeout=timeout, announce=revisions.announce)
    try:
        opened()
        await _serve_workers(store, control)
    finally:
        await store.close()


async def _serve_workers(store: Store, control: socket.socket) -> None:
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
