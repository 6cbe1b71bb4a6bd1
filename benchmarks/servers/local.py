"""A Pilothouse of our own to put under load: started here, with a token, and timed until it is ready."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servers.target import Target

_HERE = Path(__file__).parent.parent.parent
TOKEN, USER_TOKEN = "benchmark-token", "user-token"
"""Of somebody who may do everything, and of somebody who may do nothing until a binding says so."""


@contextmanager
def local_pilothouse(folder: Path, *flags: str, source: Path = _HERE) -> Iterator[tuple[Target, float]]:
    """The server of a source tree, and the seconds from its start until /readyz said yes."""
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},benchmark,benchmark,"system:masters"\n{USER_TOKEN},bench,bench\n')
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", "--secure-port=0", f"--data-dir={folder}/data"]
    command += [f"--token-auth-file={tokens}", "--authorization-mode=RBAC", *flags]
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        target = Target("pilothouse", _url(process), TOKEN, str(folder / "data/pki/ca.crt"), process.pid)
        wait_ready(target, process)
        yield target, time.perf_counter() - start
    finally:
        process.terminate()
        process.wait(30)


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"https://\S+:\d+", line):
            return found[0]
    raise SystemExit("the server ended before it was ready")


def wait_ready(target: Target, process: subprocess.Popen[Any]) -> None:
    """Wait until /readyz answers 200. Raises SystemExit if the process ends before that."""
    request = urllib.request.Request(f"{target.url}/readyz", headers={"Authorization": f"Bearer {target.token}"})
    while process.poll() is None:
        try:
            with urllib.request.urlopen(request, context=target.tls, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"{target.name} ended before it was ready")
