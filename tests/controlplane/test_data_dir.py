"""The data directory has one user at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pilothouse.controlplane.data_dir import DataDir, DataDirInUse, DataDirUnsafe


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


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_what_others_could_change_or_read_is_tightened(tmp_path: Path) -> None:
    pki = tmp_path / "pki"
    pki.mkdir()
    modes = {
        tmp_path: (0o777, 0o755),
        pki: (0o2775, 0o2755),
        pki / "ca.key": (0o644, 0o600),
        pki / "ca.crt": (0o666, 0o644),
        tmp_path / "admin.kubeconfig": (0o640, 0o600),
        tmp_path / "store.db": (0o660, 0o600),
        tmp_path / "store.db-wal": (0o604, 0o600),
    }
    for path, (before, _) in modes.items():
        if not path.is_dir():
            path.touch()
        path.chmod(before)
    DataDir.open(tmp_path).close()
    assert {path: mode_of(path) for path in modes} == {path: after for path, (_, after) in modes.items()}


def test_a_link_is_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared.key"
    shared.touch()
    shared.chmod(0o640)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "ca.key").symlink_to(shared)
    DataDir.open(data).close()
    assert mode_of(shared) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "pki", "pki/ca.key", "pki/planted.key"])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.key").touch()
    (tmp_path / "pki" / "planted.key").symlink_to("/nowhere")
    os.chown(tmp_path / name, 12345, -1, follow_symlinks=False)
    with pytest.raises(DataDirUnsafe, match=f"{tmp_path / name} belongs to user 12345"):
        DataDir.open(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_is_root_s_and_open_to_others_is_refused() -> None:
    code = (
        "import os, pathlib, sys\n"
        "from pilothouse.controlplane.data_dir import make_private\n"
        "os.setegid(12345); os.seteuid(12345)\n"
        "make_private(pathlib.Path(sys.argv[1]))\n"
    )
    with TemporaryDirectory() as name:  # pytest's own are below one that only root may enter
        shared = Path(name)
        shared.chmod(0o777)
        command = [sys.executable, "-c", code, name]
        refused = subprocess.run(command, check=False, capture_output=True, text=True)
        assert f"{shared} has mode 0777, so that others can change or read it" in refused.stderr
        shared.chmod(0o755)
        assert subprocess.run(command, check=False).returncode == 0
