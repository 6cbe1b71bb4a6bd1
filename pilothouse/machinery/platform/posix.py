"""Linux and macOS."""

from __future__ import annotations

import fcntl
import mmap
import os
import shlex
import signal
import socket
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio.subprocess import Process

CAN_FORK: Final = True
"""Whether a process can be forked, and share sockets with its children."""
CAN_RENAME_OPEN_FILES: Final = True
CAN_SHARE_PORTS: Final = hasattr(socket, "SO_REUSEPORT")
"""Whether several processes can listen on one port."""
BINARY: Final = 0
"""Flag of `os.open` for files whose line ends are written as they are."""

STOP_SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask a server to stop."""
HANGUP_SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGHUP,)
"""Signals of a terminal that is closed."""

NEW_PROCESS_GROUP: Final[dict[str, Any]] = {"process_group": 0}
"""Arguments of `create_subprocess_exec` for a child that a Ctrl-C in the terminal does not reach."""

_STATM: Final = Path("/proc/self/statm")
_FULL_SYNC: Final = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: flush the drive's own cache, too. Its `fsync` only hands the data to the drive."""
_SO_NWRITE: Final = 0x1024
"""macOS: the socket option that reads the bytes in the send buffer. Linux has the ioctl SIOCOUTQ for it."""


# Event loop and signals


def new_event_loop() -> AbstractEventLoop:
    """Return uvloop's event loop, or asyncio's where uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        from asyncio import new_event_loop

        return new_event_loop()
    return uvloop.new_event_loop()


def on_signals(numbers: Sequence[signal.Signals], callback: Callable[[signal.Signals], object]) -> None:
    """Call `callback` in the running event loop for every signal of these numbers. Main thread only."""
    from asyncio import get_running_loop

    loop = get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, callback, number)


def stop_process(process: Process) -> None:
    """Ask a child of NEW_PROCESS_GROUP to stop in good order. Raises ProcessLookupError."""
    process.terminate()


def notify_service_manager(address: str, message: bytes) -> None:
    """Send a datagram to the socket that NOTIFY_SOCKET names, `@` for an abstract one. Raises OSError."""
    path = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.sendto(message, path)


# Files


def lock_file(file: int, *, wait: bool) -> None:
    """Lock an open file against other processes until it is unlocked or closed, or this process ends.

    Raises BlockingIOError at once if another process has the lock and `wait` is false.
    """
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock_file(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


def close_locked(file: int) -> None:
    """Close the file; its lock goes with the last process that has it open, so a forked child must not unlock it."""
    os.close(file)


def sync_file(file: int) -> None:
    """Make the content durable: on the medium, not only in the drive's cache."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(file, _FULL_SYNC)
        except OSError:  # network file systems have no such request
            os.fsync(file)
    else:
        os.fsync(file)


def sync_directory(directory: Path) -> None:
    """Make the names in the directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def replace_file(source: Path, target: Path) -> None:
    """Rename `source` to `target` in one step, in place of a file that may be there and open."""
    os.replace(source, target)


def set_mode(file: int, mode: int) -> None:
    """Set the permissions of an open file, whatever the umask is."""
    os.fchmod(file, mode)


def effective_user() -> int | None:
    """Return the uid that owns what this process makes. None where files have neither owners' uids nor modes."""
    return os.geteuid()


# Measurements


def unsent_bytes(connection: socket.socket) -> int | None:
    """Return the bytes that the kernel has not sent, or whose receipt is not acknowledged. None where it does not say.

    Raises OSError, ValueError for a closed socket.
    """
    if _FULL_SYNC is not None:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def resident_memory() -> int | None:
    """Return the bytes of physical memory in use. None where the system does not say: outside Linux."""
    try:
        return int(_STATM.read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return None


# Names


def machine() -> str:
    """Return the system's name of the processor architecture."""
    return os.uname().machine


def assignment_command(name: str, value: str) -> str:
    """Return the command that sets an environment variable in the user's shell."""
    return f"export {name}={shlex.quote(value)}"
