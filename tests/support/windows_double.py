"""A Python child process that lacks all that Windows lacks, with a double of `msvcrt`.

The double locks byte ranges as Windows does: for other handles, also those of the same process, at the current
position, at once or not at all. Under it are POSIX locks of open file descriptions, which the real `fcntl` has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the double of msvcrt stands on Linux's locks")

PREAMBLE = """
import asyncio, asyncio.selector_events, asyncio.unix_events, os, shutil, signal, socket, ssl, sqlite3, struct
import subprocess, sys, tempfile, types
import fcntl as _fcntl

_ABSENT = {"fcntl", "termios", "uvloop", "resource", "pwd", "grp", "tty", "pty"}

class _Hiding:
    #A finder that does not find what Windows does not have.
    def __init__(self, finder):
        self._finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name in _ABSENT else self._finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self._finder, name)

def _locking(file, mode, count):
    at = os.lseek(file, 0, os.SEEK_CUR)
    kind = _fcntl.F_UNLCK if mode == 0 else _fcntl.F_WRLCK
    what = struct.pack("hhqqi4x", kind, os.SEEK_SET, at, count, 0)
    try:
        _fcntl.fcntl(file, 37, what)  # F_OFD_SETLK of Linux
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None

def _missing(*args, **kwargs):
    raise NotImplementedError

msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_UNLCK, msvcrt.LK_LOCK, msvcrt.LK_NBLCK, msvcrt.LK_RLCK, msvcrt.LK_NBRLCK = range(5)
msvcrt.locking = _locking
for name in _ABSENT:
    sys.modules.pop(name, None)
sys.modules["msvcrt"] = msvcrt
sys.meta_path[:] = map(_Hiding, sys.meta_path)
_socketpair, _unix = socket.socketpair, socket.AF_UNIX
socket.socketpair = lambda *_: _socketpair(_unix)  # Windows has none either, but Python makes one of two connections
for module, names in {
    os: "fork forkpty geteuid getuid getegid getgid fchmod chown fchown pread pwrite O_DIRECTORY O_CLOEXEC O_NOFOLLOW "
        "O_NONBLOCK sysconf getpgid setpgid killpg mkfifo statvfs getloadavg uname fdatasync",
    socket: "AF_UNIX SO_REUSEPORT send_fds recv_fds",
    signal: "SIGHUP SIGKILL SIGCHLD SIGUSR1 SIGUSR2 SIGALRM SIGPIPE pthread_sigmask sigwait setitimer",
    asyncio: "start_unix_server open_unix_connection",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
shutil._use_fd_functions = False  # as on Windows
signal.SIGBREAK = signal.SIGQUIT
loop = asyncio.unix_events._UnixSelectorEventLoop
loop.add_signal_handler = loop.remove_signal_handler = _missing
loop.create_unix_server = loop.create_unix_connection = _missing
asyncio.selector_events.BaseSelectorEventLoop.add_reader = _missing  # asyncio itself has a name of its own for it
asyncio.selector_events.BaseSelectorEventLoop.add_writer = _missing
"""
"""Runs before everything else. The standard library keeps the names that it has imported, as its own for Windows would
have others; programs and libraries find none of them."""


def windows_python(folder: Path) -> Mapping[str, str]:
    """Return the environment in which Python starts without what Windows lacks. `folder` gets a sitecustomize.py."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(PREAMBLE)
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONIOENCODING": "cp1252",
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # others ask for the system's name, which stays Linux
    }


def run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run Python on the double to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=windows_python(folder),
        capture_output=True,
        encoding="cp1252",
        check=False,
        timeout=100,
    )
