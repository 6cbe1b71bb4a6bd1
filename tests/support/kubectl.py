"""The real kubectl, pointed at one server. Tests that need it skip where it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from patience import PATIENCE

BINARY = shutil.which("kubectl")
MISSING = "kubectl is not on this machine's PATH"


class Kubectl:
    """Each call runs one command to its end and answers what it printed; a failure is an error unless it is wanted."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        assert BINARY is not None
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        done = self.run(*words, stdin=stdin, env=env)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def fails(self, *words: str, stdin: str = "") -> str:
        """What a command that must fail said about it."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(words)} did not fail: {done.stdout}"
        return done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def run(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(BINARY), *words]
        environment = self.environment | (env or {})
        return subprocess.run(
            command, input=stdin, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on, such as a watch. The caller ends it."""
        return subprocess.Popen([str(BINARY), *words], env=self.environment, stdout=subprocess.PIPE, text=True)
