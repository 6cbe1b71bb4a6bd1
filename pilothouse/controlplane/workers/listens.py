"""How several workers listen on one port.

Linux shares the connections out among sockets that listen on the same port, so each worker has one of its own. Other
systems give them all to one of these; there the workers take connections from one socket, whoever comes first.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.apiserver.serving.server import ListenEndpoint, bind
from pilothouse.machinery.dataclass import dataclass

KERNEL_SHARES_OUT = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Listens:
    port: int
    listener: socket.socket | None = None
    """The one socket of all workers; None where each has its own."""


@contextmanager
def listening(endpoint: ListenEndpoint) -> Iterator[Listens]:
    """Hold the port for the workers, whichever of them are there. Raises OSError where it cannot be had."""
    taken = bind(endpoint)
    if not KERNEL_SHARES_OUT:
        with taken:
            yield Listens(taken.getsockname()[1], taken)
        return
    with socket.socket(taken.family, socket.SOCK_STREAM) as held:
        address = taken.getsockname()
        taken.close()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(address)  # without listening: the system would give it connections that nobody takes
        yield Listens(address[1])
