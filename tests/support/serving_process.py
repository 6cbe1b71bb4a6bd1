"""A real `pilothouse serve` in its own process, and requests to it over TLS."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patience import PATIENCE

from pilothouse.machinery import release

WORKERS = os.environ.get("PILOTHOUSE_TEST_WORKERS", "")
"""How many processes each server is to be, for the tests that say nothing of it."""


class ServeProcess:
    """Ready when the constructor returns; killed by `close` if it still runs."""

    program: tuple[str, ...] = (sys.executable, "-m", "pilothouse.cli.main")
    environment: Mapping[str, str] | None = None

    def __init__(self, data_dir: Path, *flags: str) -> None:
        self.data_dir, self.flags = data_dir, flags
        command = [*self.program, "serve", "--data-dir", str(data_dir), *flags]
        if not any(flag.startswith("--secure-port") for flag in flags):
            command.append("--secure-port=0")
        if WORKERS and not any(flag.startswith("--workers") for flag in flags):
            command.append(f"--workers={WORKERS}")
        if not any(flag.startswith("--kubernetes-version") for flag in flags):
            command.append(f"--kubernetes-version={release.current().name}")
        # A pipe that nobody reads would hold up a server that has much to say.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._said, text=True, env=self.environment
        )
        giving_up = threading.Timer(PATIENCE, self.process.kill)
        giving_up.start()
        try:
            self.greeting = self._read_greeting()
        finally:
            giving_up.cancel()

    def _read_greeting(self) -> str:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith(("export KUBECONFIG=", "$env:KUBECONFIG = ")):
                return "".join(lines)
        self.process.wait()
        raise AssertionError(f"the server ended before it was ready: {self.errors()}")

    @property
    def port(self) -> int:
        found = re.search(r"https://127\.0\.0\.1:(\d+)", self.greeting)
        assert found
        return int(found[1])

    def tls(self, *, as_admin: bool = True) -> ssl.SSLContext:
        pki = self.data_dir / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        while as_admin:
            try:
                context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
                break
            except ssl.SSLError:  # the server has replaced one of the files, and not the other yet
                assert self.process.poll() is None
        return context

    def connect(
        self, *, as_admin: bool = True, timeout: float = PATIENCE, tls: ssl.SSLContext | None = None
    ) -> http.client.HTTPSConnection:
        context = tls or self.tls(as_admin=as_admin)
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=timeout)

    def get(
        self, path: str, *, as_admin: bool = True, token: str = "", tls: ssl.SSLContext | None = None
    ) -> tuple[int, bytes]:
        connection = self.connect(as_admin=as_admin, tls=tls)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    @property
    def memory(self) -> int:
        """Bytes of it that are in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def peak_memory(self) -> int:
        """Bytes that were in memory at most, since the last `forget_peak`."""
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{self.process.pid}/status").read_text(), re.MULTILINE)
        assert found
        return int(found[1]) << 10

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kubeconfig(self) -> dict[str, Any]:
        """The parts that matter, without a YAML library."""
        text = (self.data_dir / "admin.kubeconfig").read_text()
        fields = dict(re.findall(r"^\s*([a-z-]+): (\S+)$", text, re.MULTILINE))
        return {key: base64.b64decode(value) if key.endswith("-data") else value for key, value in fields.items()}

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        """Return stderr so far. The process writes at the position of the same file, which must not move."""
        return os.pread(self._said.fileno(), os.fstat(self._said.fileno()).st_size, 0).decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._said.close()


def refused(*flags: str) -> subprocess.CompletedProcess[str]:
    """The outcome of a server that can not start."""
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def parsed(body: bytes) -> Any:
    return json.loads(body)
