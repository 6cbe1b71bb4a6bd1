"""One of the examples as a process of its own, against a live server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from live_server import LiveServer

_EXAMPLES = Path(__file__).parents[2] / "examples"


@asynccontextmanager
async def example(name: str, server: LiveServer) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(_EXAMPLES / name), env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
