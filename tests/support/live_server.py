"""A real `pilothouse serve` in its own process, which can be killed and comes back on the same port."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from patience import PATIENCE

from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ClientConfig
from pilothouse.machinery import release


class LiveServer:
    def __init__(self, data_dir: Path, *flags: str) -> None:
        self.data_dir = data_dir
        self._flags = flags
        self.insecure_port = _free_port()
        self._secure_port = 0
        self._process: asyncio.subprocess.Process | None = None
        self._output: asyncio.Task[None] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def config(self) -> ClientConfig:
        return load_kubeconfig(self.kubeconfig)

    async def start(self) -> None:
        flags = [f"--data-dir={self.data_dir}", f"--secure-port={self._secure_port}"]
        flags.append(f"--insecure-port={self.insecure_port}")
        if not any(flag.startswith("--kubernetes-version") for flag in self._flags):
            flags.append(f"--kubernetes-version={release.current().name}")
        command = [sys.executable, "-m", "pilothouse.cli.main", "serve", *flags, *self._flags]
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(PATIENCE):
            await self._read_greeting(self._process)
        self._output = asyncio.ensure_future(self._swallow(self._process))

    async def kill(self) -> None:
        """SIGKILL: no time to say goodbye."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
        if self._output is not None:
            await self._output

    @asynccontextmanager
    async def run(self) -> AsyncIterator[LiveServer]:
        try:
            await self.start()
            yield self
        finally:
            await self.kill()

    async def _read_greeting(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        seen = b""
        while line := await process.stdout.readline():
            seen += line
            if line.startswith(b"export KUBECONFIG="):
                found = re.search(rb"https://127\.0\.0\.1:(\d+)", seen)
                assert found
                self._secure_port = int(found[1])
                return
        raise AssertionError(f"the server ended before it was ready: {seen.decode()}")

    async def _swallow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while await process.stdout.read(1 << 16):
            pass


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
