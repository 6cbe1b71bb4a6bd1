"""The shared keys of a server of several processes: they are there before its workers are, and one of those follows.

Keys in etcd are fetched by a process of their own: a client of etcd has threads, and a process with threads can not be
forked from.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.controlplane.certificates.errors import CertificateError
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.shared_keys.source import are_in_the_store, key_source, settle
from pilothouse.controlplane.storage import open_bare_store
from pilothouse.controlplane.workers.children import fork
from pilothouse.controlplane.workers.status_pipe import StatusPipe


def settle_keys(options: CompletedOptions) -> None:
    """Bring the shared keys into the data directory. Raises StartFailed, CertificateError, OSError."""
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
    except KeyboardInterrupt:  # the child has a process group of its own and does not receive Ctrl-C
        child.signal(signal.SIGKILL)
        raise
    for said in status.heard():
        raise StartFailed(said["error"])
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
