"""Who this server is among several: the same name after a restart on the same host."""

from __future__ import annotations

import base64
import hashlib
import socket


def hostname() -> str:
    return socket.gethostname().lower()


def server_id(host: str) -> str:
    """kube-apiserver's own name for itself: a hash of the host's name and of what the server is."""
    parts = (host.encode(), b"kube-apiserver")
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()
