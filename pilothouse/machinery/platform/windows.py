"""Windows: no fork, no Unix sockets, no file modes, mandatory file locks.

Uses the standard library only. On other systems only tests import this module.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio.subprocess import Process

_msvcrt: Any = import_module("msvcrt")  # type checkers know it on Windows only

CAN_FORK: Final = False
CAN_RENAME_OPEN_FILES: Final = False
CAN_SHARE_PORTS: Final = False
BINARY: Final[int] = getattr(os, "O_BINARY", 0)

_BREAK: Final = getattr(signal, "SIGBREAK", None)
STOP_SIGNALS: Final[Sequence[signal.Signals]] = (
    signal.SIGTERM,
    signal.SIGINT,
    *(() if _BREAK is None else (signal.Signals(_BREAK),)),
)
"""Ctrl-C is SIGINT. Ctrl-Break is SIGBREAK, which other processes send for graceful termination."""
HANGUP_SIGNALS: Final[Sequence[signal.Signals]] = ()
"""Empty: closing a console window ends its processes."""

NEW_PROCESS_GROUP: Final[dict[str, Any]] = {"creationflags": 0x200}  # CREATE_NEW_PROCESS_GROUP

_LOCKED_BYTE: Final = 1 << 30
"""Offset of the locked byte, beyond the content: locks are mandatory, and the content must stay readable."""
_RETRY_EVERY: Final = 0.05
_REPLACED_WITHIN: Final = 2.0


# Event loop and signals


def new_event_loop() -> AbstractEventLoop:
    """Return asyncio's own event loop: uvloop has no build for Windows."""
    from asyncio import new_event_loop

    return new_event_loop()


def on_signals(numbers: Sequence[signal.Signals], callback: Callable[[signal.Signals], object]) -> None:
    """As on POSIX. asyncio's loop for Windows has no signal handlers, so Python's handlers schedule the callback."""
    from asyncio import get_running_loop

    loop = get_running_loop()

    def handler(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(callback, signal.Signals(number))

    for number in numbers:
        signal.signal(number, handler)


def stop_process(process: Process) -> None:
    """Send Ctrl-Break, the only event for a process group; `terminate` kills immediately."""
    process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))


def kill_process_group(process: Process) -> None:
    """Kill the child immediately; its children go on, because this system has no signal for a group."""
    process.kill()


def notify_service_manager(address: str, message: bytes) -> None:
    raise OSError("this system has no Unix sockets")


# Files


def lock_file(file: int, *, wait: bool) -> None:
    """As on POSIX. Waits by polling: the system's own wait gives up after ten seconds."""
    while True:
        try:
            _at_locked_byte(file, _msvcrt.LK_NBLCK)
            return
        except OSError as error:
            if not wait:
                raise BlockingIOError(error.errno, error.strerror) from None
            time.sleep(_RETRY_EVERY)


def unlock_file(file: int) -> None:
    _at_locked_byte(file, _msvcrt.LK_UNLCK)


def close_locked(file: int) -> None:
    """Unlock before closing: the system releases locks of closed files with a delay."""
    try:
        unlock_file(file)
    finally:
        os.close(file)


def _at_locked_byte(file: int, mode: int) -> None:
    """Lock or unlock one byte; preserves the file position, which `locking` uses."""
    before = os.lseek(file, 0, os.SEEK_CUR)
    os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
    try:
        _msvcrt.locking(file, mode, 1)
    finally:
        os.lseek(file, before, os.SEEK_SET)


def sync_file(file: int) -> None:
    """FlushFileBuffers, which also flushes the drive's cache."""
    os.fsync(file)


def sync_directory(directory: Path) -> None:
    """No-op: directories cannot be opened, and NTFS journals their entries."""


def replace_file(source: Path, target: Path) -> None:
    """As on POSIX. Retries briefly, because an open target makes the rename fail."""
    until = time.monotonic() + _REPLACED_WITHIN
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if time.monotonic() > until:
                raise
            time.sleep(_RETRY_EVERY)


def set_mode(file: int, mode: int) -> None:
    """No-op: a file inherits the access control list of its directory."""


def effective_user() -> int | None:
    return None


# Measurements


def unsent_bytes(connection: socket.socket) -> int | None:
    return None


def resident_memory() -> int | None:
    return None


# Names


def machine() -> str:
    return os.environ.get("PROCESSOR_ARCHITECTURE", "")


def assignment_command(name: str, value: str) -> str:
    """Return a PowerShell command; quotes within quotes are doubled."""
    return f"$env:{name} = '{value.replace(chr(39), chr(39) * 2)}'"
