"""Detection of a stand-in at --etcd-servers, which names the store directory; a real etcd stores the objects itself."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from pilothouse.machinery.platform import effective_user

STORE_HEADER = "Pilothouse-Store"
"""Response header of the stand-in: the store directory, percent-encoded."""
SECRET_HEADER = "Pilothouse-Store-Secret"
"""Response header with the content of SECRET_FILE, which only the owner can read: proves who names the directory."""
SECRET_FILE = ".stand-in"

_START_TIMEOUT = 10.0
_POLL_INTERVAL = 0.02
_REQUEST_TIMEOUT = 5.0


def store_of_stand_in(servers: Sequence[str]) -> Path | None:
    """Return the stand-in's store directory; None for a real etcd, or if nothing answers.

    Some frameworks do not wait for etcd: it has a few seconds to start.
    """
    if len(servers) != 1 or (url := urlsplit(servers[0])).scheme != "http" or not url.hostname:
        return None
    until = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < until:
        try:
            return _if_owned(*_probe(url))
        except ConnectionRefusedError:
            time.sleep(_POLL_INTERVAL)
        except (OSError, HTTPException):
            return None
    return None


def _probe(url: SplitResult) -> tuple[str, str]:
    """Return the claimed store directory and its secret. Raises OSError, HTTPException."""
    connection = HTTPConnection(url.hostname or "", url.port or 2379, timeout=_REQUEST_TIMEOUT)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return unquote(answer.getheader(STORE_HEADER, "")), answer.getheader(SECRET_HEADER, "")
    finally:
        connection.close()


def _if_owned(folder: str, secret: str) -> Path | None:
    """Return the folder if it belongs to this user: another process on the port must not choose where to write."""
    if not folder or not os.path.isdir(folder) or os.stat(folder).st_uid != effective_user():
        return None
    file = Path(folder) / SECRET_FILE
    is_proven = file.is_file() and hmac.compare_digest(file.read_bytes(), secret.encode())
    return Path(folder) if is_proven else None
