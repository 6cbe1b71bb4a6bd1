"""An example that is an extension API server, in its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


class ExtensionServer:
    """Ready when the constructor returns. `kill` and `start` may follow each other."""

    def __init__(self, kubeconfig: Path, data_dir: Path, *flags: str, example: str = "flunders.py") -> None:
        self._data_dir = data_dir
        self._command = [sys.executable, str(EXAMPLES / example), f"--kubeconfig={kubeconfig}", *flags]
        self.port = 0
        self.start()

    def start(self) -> None:
        words = [f"--data-dir={self._data_dir}", "--bind-address=127.0.0.1", f"--secure-port={self.port}"]
        self._process = subprocess.Popen(
            [*self._command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"server +https://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise AssertionError(self._process.communicate()[1])

    @property
    def manifest(self) -> Path:
        return self._data_dir / "register.json"

    def stop(self) -> None:
        """In order: what is under way is answered."""
        self._process.terminate()
        self._process.communicate()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
