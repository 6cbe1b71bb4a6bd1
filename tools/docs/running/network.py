"""A network of its own for each page: its ports are free whatever else runs, and nothing outside is reached."""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
import subprocess
from functools import cache

_APART = ["unshare", "--user", "--map-root-user", "--net"]
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _UP = 0x8913, 0x8914, 0x8916, 0x1
_ADDRESS = "192.0.2.1"
"""An address that is not loopback, as most machines have; this one is kept free for documentation."""


@cache
def apart() -> list[str]:
    """Return the words that run a command in such a network; none where this user may not have one."""
    if shutil.which(_APART[0]) is None:
        return []
    return _APART if subprocess.run([*_APART, "true"], capture_output=True).returncode == 0 else []


def set_up() -> None:
    """A new network has a loopback interface that is down. Does nothing where it is up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _, flags = struct.unpack("16sH14x", fcntl.ioctl(control, _GET_FLAGS, struct.pack("16sH14x", b"lo", 0)))
        if not flags & _UP:
            fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
            address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(_ADDRESS))
            fcntl.ioctl(control, _SET_ADDRESS, struct.pack("16s16s", b"lo:1", address))
