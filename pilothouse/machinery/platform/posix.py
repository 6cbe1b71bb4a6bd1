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
"""Whether a process can fork and share sockets with its children."""
CAN_RENAME_OPEN_FILES: Final = True
CAN_SHARE_PORTS: Final = hasattr(socket, "SO_REUSEPORT")
"""Whether several processes can listen on one port."""
BINARY: Final = 0
"""`os.open` flag against translation of line endings."""

STOP_SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGTERM, signal.SIGINT)
"""Signals for graceful termination."""
HANGUP_SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGHUP,)
"""Signals of a closed terminal."""

NEW_PROCESS_GROUP: Final[dict[str, Any]] = {"start_new_session": True}  # uvloop does not know process_group
"""Arguments of `create_subprocess_exec` that shield the child from Ctrl-C in the terminal."""

_STATM: Final = Path("/proc/self/statm")
_FULL_SYNC: Final = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: flush the drive's cache, too; `fsync` only transfers data to the drive."""
_SO_NWRITE: Final = 0x1024
"""macOS: socket option for the bytes in the send buffer. Linux has the ioctl SIOCOUTQ."""


# Event loop and signals


def new_event_loop() -> AbstractEventLoop:
    """Return a uvloop event loop, or asyncio's if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        from asyncio import new_event_loop

        return new_event_loop()
    return uvloop.new_event_loop()


def on_signals(numbers: Sequence[signal.Signals], callback: Callable[[signal.Signals], object]) -> None:
    """Call `callback` in the running event loop for each of these signals. Main thread only."""
    from asyncio import get_running_loop

    loop = get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, callback, number)


def stop_process(process: Process) -> None:
    """Request graceful termination of a child of NEW_PROCESS_GROUP. Raises ProcessLookupError."""
    process.terminate()


def kill_process_group(process: Process) -> None:
    """Kill a child of NEW_PROCESS_GROUP and its children immediately. Raises ProcessLookupError."""
    os.killpg(process.pid, signal.SIGKILL)


def notify_service_manager(address: str, message: bytes) -> None:
    """Send a datagram to the socket in NOTIFY_SOCKET; `@` denotes an abstract socket. Raises OSError."""
    path = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.sendto(message, path)


# Files


def lock_file(file: int, *, wait: bool) -> None:
    """Lock an open file against other processes until unlock, close or process exit.

    Raises BlockingIOError immediately if another process holds the lock and `wait` is false.
    """
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock_file(file: int) -> None:
    fcntl.flock(file, fcntl.LOCK_UN)


def close_locked(file: int) -> None:
    """Close the file. The lock is released with the last open descriptor, so a forked child must not unlock it."""
    os.close(file)


def sync_file(file: int) -> None:
    """Make the content durable, including the drive's cache."""
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
    """Rename `source` to `target` atomically, replacing an existing, possibly open file."""
    os.replace(source, target)


def set_mode(file: int, mode: int) -> None:
    """Set the permissions of an open file, ignoring the umask."""
    os.fchmod(file, mode)


def effective_user() -> int | None:
    """Return the uid that owns new files; None on systems without uids and modes."""
    return os.geteuid()


# Measurements


def unsent_bytes(connection: socket.socket) -> int | None:
    """Return the unsent or unacknowledged bytes of a connection; None if unavailable.

    Raises OSError or ValueError for a closed socket.
    """
    if _FULL_SYNC is not None:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def resident_memory() -> int | None:
    """Return the bytes of physical memory in use; None outside Linux."""
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
