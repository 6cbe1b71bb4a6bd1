"""A project's server while it is written: beside a control plane of its own, or registered in a cluster that is there.

All of it is below `.pilothouse` in the project's folder, and goes when this ends.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from pilothouse.builder.registration import RECORD, Registration
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.scaffold.errors import ScaffoldError
from pilothouse.scaffold.project import Project
from pilothouse.scaffold.reloading import Reloading
from pilothouse.testing.errors import StartError
from pilothouse.testing.running import server

_FOLDER = ".pilothouse"


async def develop(project: Project, kubeconfig: Path | None, stop: asyncio.Event, say: Callable[[str], None]) -> None:
    """Run the project's server until `stop` is set, in the cluster of the kubeconfig or in a new one.

    Raises ScaffoldError.
    """
    with _home(project) as home:
        async with AsyncExitStack() as opened:
            flags = ["--secure-port=0", "--register", f"--data-dir={home / 'server'}"]
            if kubeconfig is None:
                flags.append("--bind-address=127.0.0.1")
                kubeconfig = await _control_plane(home, opened)
            client = await opened.enter_async_context(connect(_config(kubeconfig)))
            opened.push_async_callback(_unregister, client, home / "server" / RECORD)
            say(f"{project.group} is started now, and again whenever a file changes. Ctrl-C ends it.")
            say(f"\nexport KUBECONFIG={shlex.quote(str(kubeconfig))}\n")
            command = [sys.executable, "-m", project.package, f"--kubeconfig={kubeconfig}", *flags]
            await Reloading(command, project.folder, say).run(stop)


async def _control_plane(home: Path, opened: AsyncExitStack) -> Path:
    """Start one that ends with `opened`, and return its kubeconfig."""
    try:
        started = server(data_dir=home / "cluster", kubeconfig_out=home / "kubeconfig")
        return (await opened.enter_async_context(started)).kubeconfig
    except StartError as error:
        raise ScaffoldError(f"the control plane does not start: {error}") from error


def _config(kubeconfig: Path) -> ClientConfig:
    try:
        return load_kubeconfig(kubeconfig)
    except ConfigError as error:
        raise ScaffoldError(str(error)) from error


async def _unregister(client: Client, record: Path) -> None:
    """Remove from the cluster what a server that could not do so itself has registered, such as a broken one."""
    await Registration(client, record).remove()


@contextmanager
def _home(project: Project) -> Iterator[Path]:
    """Have a folder of our own for as long as the block lasts: two of us must not share one."""
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
