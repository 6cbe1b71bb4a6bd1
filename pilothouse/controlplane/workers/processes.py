"""Child processes of the supervisor: the store process, and workers that are complete API servers on its store."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from pilothouse.apiserver import logs
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.remote.server import StoreSession
from pilothouse.apiserver.storage.remote.store import RemoteStore
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.run import Ready, collect_garbage_from_now_on, serve_as_worker
from pilothouse.controlplane.serving_place import ServingPlace
from pilothouse.controlplane.signals import stop_on_signal
from pilothouse.controlplane.storage import open_bare_store
from pilothouse.controlplane.workers.children import StatusPipe
from pilothouse.controlplane.workers.membership import Membership
from pilothouse.controlplane.workers.metrics import WorkerPeers, count_worker
from pilothouse.machinery.platform import STOP_SIGNALS, new_event_loop

log = logging.getLogger(__name__)

_ORPHANED = 70
"""Exit code of a child without a supervisor or store."""


def run_store(
    options: CompletedOptions, control: socket.socket, revisions: SharedRevisions, status: StatusPipe
) -> None:
    logs.set_process("store")
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the supervisor ends the store process after the last worker

    async def serve() -> None:
        with start_failures(StorageError, ValueError):
            await serve_store(options, control, revisions, opened=collect_garbage_from_now_on)

    _run(serve(), status)


def run_worker(options: CompletedOptions, member: Membership, port: int, lifeline: int, status: StatusPipe) -> None:
    logs.set_process(f"worker {member.number}")

    def ready(server: Ready) -> None:
        collect_garbage_from_now_on()
        status.say(url=server.url, kubeconfig=server.kubeconfig, data_dir=server.data_dir, storage=server.storage)

    async def serve() -> None:
        asyncio.get_running_loop().add_reader(lifeline, os._exit, _ORPHANED)
        await _serve_api(member.share_of(options, port), member, ready)

    _run(serve(), status)


async def _serve_api(options: CompletedOptions, member: Membership, ready: Any) -> None:
    # A group signal reaches a worker twice, directly and from the supervisor. Only the supervisor handles a second
    # signal.
    stop, peers = stop_on_signal(insist=False), WorkerPeers(member)
    with start_failures(StorageError, ValueError):
        store = await _open_store(options, member)
    place = ServingPlace(
        leads=member.is_first,
        peers=peers,
        health_checks=(member.check(),),
        listener=member.listener,
        can_serve=lambda: member.board.set_ready(member.number, True),
    )
    count_worker(member.board, member.number)
    answering = asyncio.create_task(peers.answer())
    try:
        await serve_as_worker(options, store, place, stop, ready)
    finally:
        answering.cancel()
        await store.close()


async def _open_store(options: CompletedOptions, member: Membership) -> Store:
    if member.store is None:
        timeout = options.generic.storage_initialization_timeout
        return await open_bare_store(options.etcd, Path(options.pilothouse.data_dir), timeout=timeout)
    store = await RemoteStore.connect(member.store, member.revisions)
    store.lost.add_done_callback(_orphaned)
    return store


def _orphaned(lost: asyncio.Future[None]) -> None:
    """Exit, because this worker may have served state that the store never made durable."""
    if not lost.cancelled():
        log.error("the store's process is gone")
        os._exit(_ORPHANED)


def _run(work: Coroutine[Any, Any, None], status: StatusPipe) -> None:
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(work)
    except StartFailed as error:
        status.say(error=str(error))


_ONE = 1


async def serve_store(
    options: CompletedOptions, control: socket.socket, revisions: SharedRevisions, opened: Callable[[], None]
) -> None:
    """Serve until the supervisor closes its end of `control`, which delivers the workers' sockets.

    Returns after the store is closed. Raises StorageError, OSError.
    """
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
