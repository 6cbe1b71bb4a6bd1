"""The name of this server among others of a cluster: upstream's, made from the name of its host."""

from __future__ import annotations

import base64
import hashlib
import socket

_COMPONENT = b"kube-apiserver"


def server_id() -> str:
    """Return the same for every start on one host."""
    host = socket.gethostname().encode()
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in (host, _COMPONENT))).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()
