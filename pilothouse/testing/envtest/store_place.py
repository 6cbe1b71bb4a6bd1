"""Who answers at --etcd-servers: a stand-in, which says where to keep objects, or an etcd that keeps them itself."""

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
"""In every answer of a stand-in: the folder, percent-encoded, in which `kube-apiserver` is to keep its objects."""
SECRET_HEADER = "Pilothouse-Store-Secret"
"""The content of a file in that folder, which nobody but its owner can read: strangers can not name our folders."""
SECRET_FILE = ".stand-in"

_APPEARS_WITHIN = 10.0
_ASK_EVERY = 0.02
_ANSWERS_WITHIN = 5.0


def store_of_stand_in(servers: Sequence[str]) -> Path | None:
    """Return the stand-in's folder; None where something else is there, or nothing.

    Some frameworks do not wait for etcd before they start the server: it has a few seconds to appear.
    """
    if len(servers) != 1 or (url := urlsplit(servers[0])).scheme != "http" or not url.hostname:
        return None
    until = time.monotonic() + _APPEARS_WITHIN
    while time.monotonic() < until:
        try:
            return _ours(*_asked(url))
        except ConnectionRefusedError:
            time.sleep(_ASK_EVERY)
        except (OSError, HTTPException):
            return None
    return None


def _asked(url: SplitResult) -> tuple[str, str]:
    """Return the folder and its secret, as they are said to be. Raises OSError, HTTPException."""
    connection = HTTPConnection(url.hostname or "", url.port or 2379, timeout=_ANSWERS_WITHIN)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return unquote(answer.getheader(STORE_HEADER, "")), answer.getheader(SECRET_HEADER, "")
    finally:
        connection.close()


def _ours(folder: str, secret: str) -> Path | None:
    """A stranger on this port must not choose where we write: the stand-in of this user has made the folder."""
    if not folder or not os.path.isdir(folder) or os.stat(folder).st_uid != effective_user():
        return None
    file = Path(folder) / SECRET_FILE
    is_proven = file.is_file() and hmac.compare_digest(file.read_bytes(), secret.encode())
    return Path(folder) if is_proven else None
