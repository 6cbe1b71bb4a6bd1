"""The data directory has one user at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.controlplane.data_dir import DataDir, DataDirInUse


def test_a_directory_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    DataDir.open(tmp_path / "a" / "b").close()
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_second_holder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    first = DataDir.open(tmp_path)
    with pytest.raises(DataDirInUse, match=f"in use by another pilothouse \\(pid {os.getpid()}\\)"):
        DataDir.open(tmp_path)
    first.close()
    DataDir.open(tmp_path).close()


def test_the_directory_is_free_again_when_its_holder_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal, pathlib\n"
        "from pilothouse.controlplane.data_dir import DataDir\n"
        "held = DataDir.open(pathlib.Path(sys.argv[1]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    holder = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert holder.returncode == -9
    DataDir.open(tmp_path).close()
