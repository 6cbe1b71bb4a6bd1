"""Runs a server of several processes: what only one of them may do is done here, before they start."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pilothouse.apiserver.serving.server import ListenEndpoint
from pilothouse.controlplane.certificates.errors import CertificateError
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.controlplane.ports import host_port
from pilothouse.controlplane.run import Announcement
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.workers.listens import Listens, listening
from pilothouse.controlplane.workers.shared_keys import settle_keys
from pilothouse.controlplane.workers.supervisor import Supervisor


def run_workers(options: CompletedOptions, ready: Callable[[Announcement], None]) -> None:
    """Serve until a signal comes; return after an orderly shutdown. Raises StartFailed."""
    with start_failures(CertificateError, DataDirError, ValueError), ExitStack() as opened:
        opened.callback(DataDir.open(Path(options.pilothouse.data_dir)).close)
        settle_keys(options)
        Certificates.ensure(options)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-")))
        folder.chmod(0o700)
        listens = opened.enter_context(_reserved(options.secure_serving))
        gc.freeze()  # so that children do not copy all pages by looking for garbage in them
        Supervisor(options, workers=options.pilothouse.worker_count, listens=listens, folder=folder).run(ready)


@contextmanager
def _reserved(options: SecureServingOptions) -> Iterator[Listens]:
    """Raises StartFailed."""
    endpoint = ListenEndpoint(options.bind_address, options.secure_port, reuse_port=options.permit_port_sharing)
    try:
        with listening(endpoint) as listens:
            yield listens
    except OSError as error:
        where = host_port(options.bind_address, options.secure_port)
        raise StartFailed(f"failed to listen on {where}: {error.strerror}") from error
