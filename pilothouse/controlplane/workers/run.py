"""Runs a server of several processes. Exclusive work (data directory, keys, certificates) happens before the fork.

A child process fetches keys from etcd, because the etcd client starts threads, and a process with threads must not
fork.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pilothouse.apiserver.serving.server import ListenEndpoint
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.controlplane.ports import host_port
from pilothouse.controlplane.run import Announcement
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.shared_keys.source import are_in_the_store, key_source, settle
from pilothouse.controlplane.storage import open_bare_store
from pilothouse.controlplane.workers.children import StatusPipe, fork
from pilothouse.controlplane.workers.supervisor import Listens, Supervisor, listening


def run_workers(options: CompletedOptions, ready: Callable[[Announcement], None]) -> None:
    """Serve until a signal; return after an orderly shutdown. Raises StartFailed."""
    with start_failures(CertificateError, DataDirError, ValueError), ExitStack() as opened:
        opened.callback(DataDir.open(Path(options.pilothouse.data_dir)).close)
        settle_keys(options)
        Certificates.ensure(options)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-")))
        folder.chmod(0o700)
        listens = opened.enter_context(_reserved(options.secure_serving))
        gc.freeze()  # prevents copy-on-write of all pages by garbage collection in children
        Supervisor(options, workers=options.pilothouse.worker_count, listens=listens, folder=folder).run(ready)


@contextmanager
def _reserved(options: SecureServingOptions) -> Iterator[Listens]:
    """Reserve the port. Raises StartFailed."""
    endpoint = ListenEndpoint(options.bind_address, options.secure_port, reuse_port=options.permit_port_sharing)
    try:
        with listening(endpoint) as listens:
            yield listens
    except OSError as error:
        where = host_port(options.bind_address, options.secure_port)
        raise StartFailed(f"failed to listen on {where}: {error.strerror}") from error


def settle_keys(options: CompletedOptions) -> None:
    """Copy the shared keys into the data directory. Raises StartFailed, CertificateError, OSError."""
    if are_in_the_store(options):
        _in_a_process_of_its_own(options)
    else:
        asyncio.run(settle(key_source(options, None), Path(options.pilothouse.data_dir)))


def _in_a_process_of_its_own(options: CompletedOptions) -> None:
    status = StatusPipe()

    def work() -> None:
        try:
            asyncio.run(_settle_from_etcd(options))
        except StartFailed as error:
            status.say(error=str(error))

    child = fork("keys", work)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    except KeyboardInterrupt:  # the child has its own process group, and does not receive Ctrl-C
        child.signal(signal.SIGKILL)
        raise
    for message in status.heard():
        raise StartFailed(message["error"])
    if code:
        raise StartFailed("the shared keys could not be fetched")


async def _settle_from_etcd(options: CompletedOptions) -> None:
    data_dir, timeout = Path(options.pilothouse.data_dir), options.generic.storage_initialization_timeout
    with start_failures(CertificateError, StorageError, ValueError):
        store = await open_bare_store(options.etcd, data_dir, timeout=timeout)
        try:
            await settle(key_source(options, store), data_dir)
        finally:
            await store.close()
