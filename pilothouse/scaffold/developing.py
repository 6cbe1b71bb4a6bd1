"""`pilothouse dev`: run a project's server with a temporary control plane, or registered in an existing cluster.

All state is in `.pilothouse` in the project's folder, and is removed at the end.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

from pilothouse.builder.registration import RECORD, Registration
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.machinery.platform import NEW_PROCESS_GROUP, stop_process
from pilothouse.scaffold.names import ScaffoldError
from pilothouse.scaffold.project import Project
from pilothouse.testing.running import StartError, server

_FOLDER = ".pilothouse"

_POLL_INTERVAL = 0.5
_STOP_TIMEOUT = 15.0
Snapshot = dict[str, tuple[int, int]]
"""path -> (modification time in nanoseconds, size)"""


async def develop(
    project: Project, kubeconfig: Path | None, stop: asyncio.Event, report: Callable[[str], None]
) -> None:
    """Run the project's server until `stop` is set, in the kubeconfig's cluster or in a temporary one.

    Raises ScaffoldError.
    """
    with _locked_folder(project) as home:
        async with AsyncExitStack() as opened:
            flags = ["--secure-port=0", "--register", f"--data-dir={home / 'server'}"]
            if kubeconfig is None:
                flags.append("--bind-address=127.0.0.1")
                kubeconfig = await _control_plane(home, opened)
            client = await opened.enter_async_context(connect(_config(kubeconfig)))
            opened.push_async_callback(_unregister, client, home / "server" / RECORD)
            report(f"{project.group} is starting, and restarts when a file changes. Press Ctrl-C to stop.")
            report(f"\nexport KUBECONFIG={shlex.quote(str(kubeconfig))}\n")
            command = [sys.executable, "-m", project.package, f"--kubeconfig={kubeconfig}", *flags]
            await Reloader(command, project.folder, report).run(stop)


async def _control_plane(home: Path, opened: AsyncExitStack) -> Path:
    """Start a control plane that stops with `opened`, and return its kubeconfig."""
    try:
        started = server(data_dir=home / "cluster", kubeconfig_out=home / "kubeconfig")
        return (await opened.enter_async_context(started)).kubeconfig
    except StartError as error:
        raise ScaffoldError(f"cannot start the control plane: {error}") from error


def _config(kubeconfig: Path) -> ClientConfig:
    try:
        return load_kubeconfig(kubeconfig)
    except ConfigError as error:
        raise ScaffoldError(str(error)) from error


async def _unregister(client: Client, record: Path) -> None:
    """Remove the registration that a server has left in the cluster, for example after a crash."""
    await Registration(client, record).remove()


@contextmanager
def _locked_folder(project: Project) -> Iterator[Path]:
    """Lock a folder for the duration of the block, so that two processes do not share it."""
    folder = project.folder / _FOLDER
    try:
        locked = DataDir.open(folder)
    except (DataDirError, OSError) as error:
        raise ScaffoldError(str(error)) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        locked.close()


class Reloader:
    """Runs one process at a time, and restarts it on changes. A crashed process, such as after a syntax error,
    waits for a change.
    """

    def __init__(self, command: Sequence[str], folder: Path, report: Callable[[str], None]) -> None:
        self._command = command
        self._folder = folder
        self._report = report

    async def run(self, stop: asyncio.Event) -> None:
        """Run the program until `stop` is set. Returns after the process has ended."""
        while not stop.is_set():
            before = snapshot(self._folder)
            child = await asyncio.create_subprocess_exec(*self._command, cwd=self._folder, **NEW_PROCESS_GROUP)
            try:
                await self._until_changed(before, child, stop)
                if not stop.is_set() and child.returncode is None:
                    child.kill()  # the next process continues its work; only the last process cleans up
            finally:
                await _end(child)

    async def _until_changed(self, before: Snapshot, child: Process, stop: asyncio.Event) -> None:
        reported = False
        while not stop.is_set():
            if child.returncode is not None and not reported:
                reported = True
                self._report(f"The server exited with code {child.returncode}. It restarts when a file changes.")
            if changed := changes(before, snapshot(self._folder)):
                self._report(f"{', '.join(changed)} changed.")
                return
            await _wait(stop, _POLL_INTERVAL)


def snapshot(folder: Path) -> Snapshot:
    """Return the state of all Python files, except in hidden folders and virtual environments."""
    return {os.path.relpath(path, folder): state for path, state in _files(folder)}


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the created, deleted and changed files."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_excluded(os.path.join(directory, name))]
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                try:
                    stat = os.stat(path)
                except FileNotFoundError:
                    continue  # deleted meanwhile
                yield path, (stat.st_mtime_ns, stat.st_size)


def _is_excluded(folder: str) -> bool:
    return os.path.basename(folder).startswith((".", "__pycache__")) or os.path.exists(f"{folder}/pyvenv.cfg")


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, or until the timeout."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


async def _end(child: Process) -> None:
    """Stop the process, and kill it after a timeout."""
    with suppress(ProcessLookupError):
        stop_process(child)
    try:
        await asyncio.wait_for(child.wait(), _STOP_TIMEOUT)
    except TimeoutError:
        child.kill()
        await child.wait()
