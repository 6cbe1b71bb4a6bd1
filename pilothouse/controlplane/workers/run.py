"""Runs a server of several processes: what only one of them may do is done here, before they start."""

from __future__ import annotations

import gc
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pilothouse.apiserver.serving.server import ListenEndpoint, bind
from pilothouse.controlplane.certificates.errors import CertificateError
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.serving import SecureServingOptions
from pilothouse.controlplane.ports import host_port
from pilothouse.controlplane.run import Announcement
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.workers.supervisor import Supervisor


def run_workers(options: CompletedOptions, ready: Callable[[Announcement], None]) -> None:
    """Serve until a signal comes; return after an orderly shutdown. Raises StartFailed."""
    with start_failures(CertificateError, DataDirError, ValueError), ExitStack() as opened:
        opened.callback(DataDir.open(Path(options.pilothouse.data_dir)).close)
        Certificates.ensure(options)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-")))
        port = opened.enter_context(_reserved_port(options.secure_serving))
        gc.freeze()  # so that children do not copy all pages by looking for garbage in them
        Supervisor(options, workers=options.pilothouse.worker_count, port=port, folder=folder).run(ready)


@contextmanager
def _reserved_port(options: SecureServingOptions) -> Iterator[int]:
    """Hold the port without listening on it: the system keeps it for the workers, whichever of them are there."""
    try:
        taken = bind(ListenEndpoint(options.bind_address, options.secure_port, reuse_port=options.permit_port_sharing))
        with socket.socket(taken.family, socket.SOCK_STREAM) as held:
            address = taken.getsockname()
            taken.close()
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(address)
            yield address[1]
    except OSError as error:
        where = host_port(options.bind_address, options.secure_port)
        raise StartFailed(f"failed to listen on {where}: {error.strerror}") from error
