"""A network of its own for each page: its ports are free whatever else runs, and nothing outside is reached."""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
import subprocess
from functools import cache

_APART = ["unshare", "--user", "--map-root-user", "--net"]
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


@cache
def apart() -> list[str]:
    """Return the words that run a command in such a network; none where this user may not have one."""
    if shutil.which(_APART[0]) is None:
        return []
    return _APART if subprocess.run([*_APART, "true"], capture_output=True).returncode == 0 else []


def bring_loopback_up() -> None:
    """A new network has a loopback interface that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(control, _GET_FLAGS, request))
        if not flags & _UP:
            fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
