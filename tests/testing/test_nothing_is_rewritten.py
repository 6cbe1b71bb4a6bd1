"""pytest leaves the server's own modules as they are, though the package has a plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TEST = """
import pilothouse.machinery.objects as ours

def test_ours_is_as_it_was_written():
    assert type(ours.__loader__).__name__ == "SourceFileLoader"
    assert type(__loader__).__name__ == "AssertionRewritingHook"
"""


def test_a_module_of_the_server_is_not_rewritten_in_a_users_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
