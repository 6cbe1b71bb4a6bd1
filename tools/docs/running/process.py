"""Each page runs in a process of its own, so that what one leaves behind is not there for another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.docs.running.network import apart

_ROOT = Path(__file__).parents[3]


def run_page(page: Path, *, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Do what a page shows. The exit code is 0 if all is as it says; what is not is on stderr."""
    words = [*apart(), sys.executable, "-m", "tools.docs", "run-here", str(page.resolve())]
    return subprocess.run(words, cwd=_ROOT, text=True, capture_output=capture)
