"""The example extension API server in its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "wardle"


class ExtensionServer:
    """Ready when the constructor returns. `kill` and `start` may follow each other."""

    def __init__(self, kubeconfig: Path, data_dir: Path) -> None:
        self._kubeconfig, self._data_dir = kubeconfig, data_dir
        self.port = 0
        self.start()

    def start(self) -> None:
        words = [f"--kubeconfig={self._kubeconfig}", f"--data-dir={self._data_dir}", f"--port={self.port}"]
        command = [sys.executable, str(EXAMPLE), *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        found = re.search(r"ready on port (\d+)", self._process.stdout.readline())
        assert found, self._process.communicate()[1]
        self.port = int(found[1])

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
