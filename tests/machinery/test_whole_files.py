"""Files that are written whole: a power cut leaves the old or the new content, and the new one once that is said."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from power_cuts import RecordedProcess
from traced_calls import NO_STRACE, can_trace

from pilothouse.machinery.files import written_aside

_SCRIPT = """
import os, pathlib, sys
from pilothouse.machinery.files import make_directory, write_atomically

folder = pathlib.Path(sys.argv[1], "new", "folder")
make_directory(folder)
for version in range(3):
    write_atomically(folder / "key", bytes([version]) * 5000, mode=0o600)
    os.write(1, b"%d" % version)
"""


async def _is_whole(image: Path, said: list[bytes]) -> None:
    try:
        content = (image / "new/folder/key").read_bytes()
    except FileNotFoundError:
        content = b""
    versions = [bytes([version]) * 5000 for version in range(3)]
    assert content in [versions[int(said[-1])] if said else b"", *versions[len(said) :]]


@pytest.mark.skipif(not can_trace(), reason=NO_STRACE)
async def test_a_power_cut_leaves_a_file_whole(tmp_path: Path) -> None:
    process = RecordedProcess(tmp_path, "-c", _SCRIPT, "{root}")
    cuts = await process.cut(_is_whole, share=1, each=3)
    assert cuts.faults == []
    assert cuts.tried > 100
    for name in ("disk", "new", "folder", ".key"):
        left_out = await process.cut(_is_whole, share=1, without_syncs=partial(_is_named, name), until_fault=True)
        assert left_out.faults, f"nobody notices that {name} is not synced"


def _is_named(start: str, path: Path) -> bool:
    return path.name.startswith(start)


def test_a_file_that_cannot_be_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"old")
    with pytest.raises(OSError, match="no space"):
        _fail_to_write(tmp_path / "key")
    assert [file.name for file in tmp_path.iterdir()] == ["key"]
    assert (tmp_path / "key").read_bytes() == b"old"


def _fail_to_write(path: Path) -> None:
    with written_aside(path, mode=0o600) as file:
        file.write(b"half of the n")
        raise OSError("no space")
