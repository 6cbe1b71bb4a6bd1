"""pytest beside a server in a thread: it leaves the server's modules as they are, and bears new loggers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_REWRITTEN = """
import pilothouse.machinery.objects as ours

def test_ours_is_as_it_was_written():
    assert type(ours.__loader__).__name__ == "SourceFileLoader"
    assert type(__loader__).__name__ == "AssertionRewritingHook"
"""

_LOGGERS = """
import logging
import threading

import pytest

@pytest.fixture(scope="session", autouse=True)
def a_thread_that_creates_loggers():
    ended = threading.Event()

    def create():
        number = 0
        while not ended.is_set():
            logging.getLogger(f"of.a.thread.{number % 50000}")
            number += 1

    thread = threading.Thread(target=create)
    thread.start()
    yield
    ended.set()
    thread.join()

@pytest.mark.parametrize("turn", range(100))
def test_nothing(turn):
    pass
"""


def _run(tests: str, folder: Path) -> None:
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", str(folder)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_a_module_of_the_server_is_not_rewritten_in_a_users_run(tmp_path: Path) -> None:
    _run(_REWRITTEN, tmp_path)


def test_loggers_that_a_thread_creates_do_not_fail_the_test_that_begins_meanwhile(tmp_path: Path) -> None:
    _run(_LOGGERS, tmp_path)
