"""Servers for tests: in the test's event loop, or as `pilothouse serve` in another process."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.machinery import release
from pilothouse.testing.api import API
from pilothouse.testing.home import Flag, Home, ReadyServer, new_home

if TYPE_CHECKING:
    from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.machinery.status_error import PilothouseError

_STOP_TIMEOUT = 30.0


@asynccontextmanager
async def server(
    *, data_dir: Path | None = None, process: bool = False, kubernetes_version: str = "", **flags: Flag
) -> AsyncIterator[API]:
    """Run a real API server for the duration of the block.

    The server is ready when the block begins and gone when it ends. Nothing outside of `data_dir` is touched; without
    `data_dir`, the data is in a temporary folder. `flags` are the flags of `pilothouse serve`. With `process`, the
    server runs in another process, with the Kubernetes version of this process. A server of another
    `kubernetes_version` runs in another process, too, with `testing=True` by default, so that snapshots work. Raises
    StartError with all invalid flags.

    >>> from pilothouse.testing import server
    >>> async with server() as api:
    ...     print((await api.client().get_json("/version"))["major"])
    1
    """
    if process and not kubernetes_version:
        kubernetes_version = release.current().name
    if kubernetes_version:
        flags["kubernetes_version"] = kubernetes_version
        if not process and _is_of_another_process(kubernetes_version):
            process, flags = True, {"testing": True, **flags}
    async with AsyncExitStack() as stack:
        home = stack.enter_context(new_home(data_dir, flags))
        ready = await stack.enter_async_context(child_process(home) if process else in_this_loop(home))
        opened = await stack.enter_async_context(AsyncExitStack())
        yield API(
            ready.url,
            ready.kubeconfig,
            home.token,
            home,
            opened=opened,
            handler=ready.handler,
            snapshots=ready.snapshots,
            bench=ready.bench,
        )


def _is_of_another_process(kubernetes_version: str) -> bool:
    """Return whether this process implements another version. Raises StartError for an unknown version."""
    try:
        return release.release_of(kubernetes_version) != release.current()
    except release.UnknownRelease as error:
        raise StartError(str(error)) from None


@asynccontextmanager
async def in_this_loop(home: Home) -> AsyncIterator[ReadyServer]:
    """Serve in this event loop for the duration of the block. Raises StartError."""
    from pilothouse.controlplane.errors import StartFailed
    from pilothouse.controlplane.run import Ready, serve

    stop, announced = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(_options(home.arguments), stop, announced.set_result))
    try:
        await asyncio.wait((serving, announced), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        ready: Ready = announced.result()
        yield ReadyServer(ready.url, Path(ready.kubeconfig), ready.handler, ready.snapshots, ready.bench)
        stop.set()
        await serving
    except StartFailed as error:
        raise StartError(str(error)) from None
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _options(arguments: Sequence[str]) -> CompletedOptions:
    from pilothouse.controlplane.options.completion import InvalidOptions, complete
    from pilothouse.controlplane.options.options import Options
    from pilothouse.machinery.flags import FlagError

    try:
        return complete(Options.parse(arguments)).validate()
    except (FlagError, InvalidOptions) as error:
        raise StartError(str(error)) from None


@asynccontextmanager
async def child_process(home: Home) -> AsyncIterator[ReadyServer]:
    """Serve in another process for the duration of the block. Raises StartError."""
    log = home.scratch / "server.log"
    with log.open("wb") as stderr:
        command = (sys.executable, "-X", "utf8", "-m", "pilothouse.cli.main", "serve", *home.arguments)
        child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=stderr)
    try:
        ready = await _announced(child)
        if ready is None:
            await child.wait()
            last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
            raise StartError(last.removeprefix("Error: ") or "the server ended before it was ready")
        yield ready
        child.terminate()
        await asyncio.wait_for(child.wait(), _STOP_TIMEOUT)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _announced(child: Process) -> ReadyServer | None:
    """Parse the ready message of the server; None if the process ends before."""
    assert child.stdout is not None
    fields: dict[str, str] = {}
    async for line in child.stdout:
        if named := re.match(r"  (\w+) +(.+)", line.decode().rstrip("\r\n")):
            fields[named[1]] = named[2]
        if "kubeconfig" in fields:
            return ReadyServer(fields["server"], Path(fields["kubeconfig"]))
    return None


class StartError(PilothouseError):
    """The server did not start. The message lists all invalid flags, or the reason.

    >>> from pilothouse.testing import Server, StartError
    >>> try:
    ...     Server(authorization_mode="Nobody").start()
    ... except StartError as error:
    ...     print(error)
    authorization-mode "Nobody" is not a valid mode
    """
