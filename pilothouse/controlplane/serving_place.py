"""A process's place in its server: alone, or one of several that serve as one."""

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
    """Whether it does what only one of them does."""
    peers: Peers | None = None
    health_checks: tuple[HealthCheck, ...] = ()
    """They pass when the others are ready, too."""
    listener: socket.socket | None = None
    """On which all of them take connections, where the system does not share them out itself."""
    can_serve: Callable[[], None] = lambda: None
    """Called when this process is ready, whatever the others are."""


ALONE = ServingPlace()


_COMPONENT = b"kube-apiserver"


def server_id() -> str:
    """Return the same for every start on one host."""
    host = socket.gethostname().encode()
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in (host, _COMPONENT))).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()
