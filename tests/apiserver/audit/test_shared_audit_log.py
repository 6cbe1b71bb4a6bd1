"""Several processes write one audit log: every line is whole, and none is lost when the file is set aside."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from pilothouse.apiserver.audit.log_backend import RotatedFile

WRITERS, LINES = 3, 400


def _write(path: Path, writer: int) -> None:
    file = RotatedFile(path, max_bytes=20_000)
    for number in range(LINES):
        file.write(f"{writer} {number} {'x' * (number % 300)} end\n".encode())
    file.close()


def test_lines_of_several_processes_are_whole_and_all_there(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    children = []
    for writer in range(WRITERS):
        if not (pid := os.fork()):
            try:
                _write(path, writer)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    files = list(tmp_path.glob("audit*.log"))
    lines = [line.split(" ") for file in files for line in file.read_text().splitlines()]
    assert len(files) > 1
    assert all(len(line) == 4 and line[3] == "end" and len(line[2]) == int(line[1]) % 300 for line in lines)
    assert Counter(line[0] for line in lines) == {str(writer): LINES for writer in range(WRITERS)}
