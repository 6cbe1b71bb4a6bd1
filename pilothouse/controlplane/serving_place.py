"""Role of a process in its server (single process or worker), and the server's identity in its cluster."""

from __future__ import annotations

import base64
import hashlib
import socket
from collections.abc import Callable

from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.apiserver.server.metrics_of_many import Peers
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServingPlace:
    leads: bool = True
    """Whether this process runs the singletons (controllers, compaction)."""
    peers: Peers | None = None
    health_checks: tuple[HealthCheck, ...] = ()
    """Pass when the other processes are ready."""
    listener: socket.socket | None = None
    """Shared listening socket, on systems without load balancing between sockets of one port."""
    can_serve: Callable[[], None] = lambda: None
    """Called when this process is ready, independent of other processes."""


ALONE = ServingPlace()


_COMPONENT = b"kube-apiserver"


def server_id() -> str:
    """Return upstream's server id, derived from the host name. Stable across restarts."""
    host = socket.gethostname().encode()
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in (host, _COMPONENT))).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()
