"""POSIX and Windows: the same names, and the same behaviour of locks, files and signals."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from patience import PATIENCE
from windows_double import needs_linux, windows_python

from pilothouse.machinery import platform
from pilothouse.machinery.platform import posix, sync_file

PACKAGE = Path(platform.__file__).parent


def test_windows_has_every_name_that_posix_has() -> None:
    found = {name: _public(PACKAGE / f"{name}.py") for name in ("posix", "windows")}
    assert found["posix"] == found["windows"] == set(platform.__all__)


def _public(module: Path) -> set[str]:
    body = ast.parse(module.read_text()).body
    functions = {each.name for each in body if isinstance(each, ast.FunctionDef)}
    constants = {
        each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return {name for name in functions | constants if not name.startswith("_")}


_POSIX_ONLY = re.compile(
    r"\b(?:import (?:fcntl|termios|uvloop|resource|pwd|grp)|(?:add|remove)_signal_handler"
    r"|start_unix_server|socket\.(?:AF_UNIX|SO_REUSEPORT)"
    r"|os\.(?:fork|gete?uid|fchmod|pread|pwrite|uname|setpgid|killpg|O_DIRECTORY|O_CLOEXEC)"
    r"|signal\.(?:SIGHUP|SIGKILL|SIGCHLD|pthread_sigmask|sigwait))\b|/proc/self"
)
_POSIX_PARTS = ("machinery/platform/", "controlplane/workers/", "testing/envtest/etcd.py")
"""Workers and envtest are refused where they cannot run."""


def test_posix_only_names_are_used_only_in_posix() -> None:
    sources = PACKAGE.parents[1]
    found = {
        f"{path.relative_to(sources)}: {name}"
        for path in sources.rglob("*.py")
        for name in _POSIX_ONLY.findall(path.read_text())
        if not path.relative_to(sources).as_posix().startswith(_POSIX_PARTS)
    }
    assert found == set()


@pytest.fixture(params=["posix", pytest.param("windows", marks=needs_linux)])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """Of Python processes with this implementation."""
    return windows_python(tmp_path / "double") if request.param == "windows" else os.environ


def run(environment: Mapping[str, str], code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


_HOLD = """
import os, pathlib, subprocess, sys
from pilothouse.machinery.files import HeldFile, LockHeld

path, is_first = pathlib.Path(sys.argv[1]), len(sys.argv) == 2
second = [sys.executable, *sys.orig_argv[1:], "second"]
try:
    held = HeldFile(path)
except LockHeld as refused:
    print("held by", refused.holder)
    sys.exit()
print(os.getpid() if is_first else "free", flush=True)
if is_first:
    subprocess.run(second, check=True)
    held.release()
    held.release()
    subprocess.run(second, check=True)
"""


def test_a_lock_refuses_other_processes_names_its_holder_and_goes_when_released(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    first, second, third = run(environment, _HOLD, tmp_path / "lock").splitlines()
    assert (second, third) == (f"held by {first}", "free")


_KILLED = """
import pathlib, os, signal, sys
from pilothouse.machinery.files import HeldFile
held = HeldFile(pathlib.Path(sys.argv[1]))
os.kill(os.getpid(), 9)
"""


def test_a_lock_goes_with_a_process_that_was_killed(environment: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run(environment, _KILLED, tmp_path / "lock")
    assert "free" in run(environment, _HOLD, tmp_path / "lock", "second")


_ADD = """
import pathlib, sys
from pilothouse.machinery.files import locked
path = pathlib.Path(sys.argv[1])
for _ in range(100):
    with locked(path.with_name("lock")):
        path.write_text(str(int(path.read_text(encoding="utf-8")) + 1), encoding="utf-8")
"""


def test_waiting_process_acquires_the_released_lock(environment: Mapping[str, str], tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    adding = [subprocess.Popen([sys.executable, "-c", _ADD, str(count)], env=environment) for _ in range(2)]
    assert [process.wait(PATIENCE) for process in adding] == [0, 0]
    assert count.read_text() == "200"


_ROTATE = """
import pathlib, sys
from pilothouse.apiserver.audit.log_backend import RotatedFile
from pilothouse.machinery.files import PRIVATE, write_atomically
folder = pathlib.Path(sys.argv[1])
file = RotatedFile(folder / "audit.log", max_bytes=10)
for line in (b"first\\n", b"second\\n", b"third\\n"):
    file.write(line)
file.close()
for content in (b"old", b"new"):
    write_atomically(folder / "whole", content, mode=PRIVATE)
"""


def test_files_are_rotated_and_replaced(environment: Mapping[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    run(environment, _ROTATE, folder)
    rotated = sorted(folder.glob("audit-*.log"))
    assert [file.read_bytes() for file in rotated] == [b"first\n", b"second\n"]
    assert (folder / "audit.log").read_bytes() == b"third\n"
    assert [(file.name, file.read_bytes()) for file in folder.glob("*whole*")] == [("whole", b"new")]


_SIGNALS = """
import asyncio, os
from pilothouse.machinery.platform import STOP_SIGNALS, new_event_loop, on_signals

async def main():
    got = asyncio.Queue()
    on_signals(STOP_SIGNALS, got.put_nowait)
    for number in STOP_SIGNALS:
        os.kill(os.getpid(), number)
        assert await got.get() is number
    print(*(number.name for number in STOP_SIGNALS))

with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(main())
"""


def test_every_signal_that_stops_reaches_the_loop(environment: Mapping[str, str]) -> None:
    assert run(environment, _SIGNALS).split()[:2] == [signal.SIGTERM.name, signal.SIGINT.name]


def test_macos_is_asked_to_flush_the_drive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a request that Linux does not know: there the name stands for one that every system has."""
    asked: list[int] = []
    monkeypatch.setattr(posix, "_FULL_SYNC", fcntl.F_GETFD)
    monkeypatch.setattr(fcntl, "fcntl", lambda file, request: asked.append(request))
    with (tmp_path / "file").open("wb") as file:
        sync_file(file.fileno())
    assert asked == [fcntl.F_GETFD]


def test_a_file_system_that_cannot_flush_the_drive_is_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    synced: list[int] = []
    monkeypatch.setattr(posix, "_FULL_SYNC", -1)  # EINVAL
    monkeypatch.setattr(os, "fsync", synced.append)
    with (tmp_path / "file").open("wb") as file:
        sync_file(file.fileno())
        assert synced == [file.fileno()]
