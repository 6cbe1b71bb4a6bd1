"""The server in a process of its own: `pilothouse serve`, as people start it."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilothouse.testing.errors import StartError
from pilothouse.testing.home import Home, ReadyServer

_ENDS_WITHIN = 30.0


@asynccontextmanager
async def child_process(home: Home) -> AsyncIterator[ReadyServer]:
    """Serve for as long as the block lasts. Raises StartError."""
    log = home.scratch / "server.log"
    with log.open("wb") as stderr:
        command = (sys.executable, "-m", "pilothouse.cli.main", "serve", *home.arguments)
        child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=stderr)
    try:
        place = await _announced(child)
        if place is None:
            await child.wait()
            raise StartError(_reason(log))
        yield place
        child.terminate()
        await asyncio.wait_for(child.wait(), _ENDS_WITHIN)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _announced(child: Process) -> ReadyServer | None:
    """Read what the server prints when it is ready; None if it ends before."""
    assert child.stdout is not None
    found: dict[str, str] = {}
    async for line in child.stdout:
        if named := re.match(r"  (\w+) +(.+)\n", line.decode()):
            found[named[1]] = named[2]
        if line.startswith(b"export "):
            return ReadyServer(found["server"], Path(found["kubeconfig"]))
    return None


def _reason(log: Path) -> str:
    last = log.read_text().strip().rpartition("\n")[2]
    return last.removeprefix("Error: ") or "the server ended before it was ready"
