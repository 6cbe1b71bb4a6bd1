"""A pytest plugin that runs the tests named in a file and no others, in the file's order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanted = json.loads(Path(os.environ["MUTATION_TESTS"]).read_text(encoding="utf-8"))
    position = {test: index for index, test in enumerate(wanted)}
    items[:] = sorted((item for item in items if item.nodeid in position), key=lambda item: position[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        Path(os.environ["MUTATION_TESTS"]).with_name("failed").write_text(report.nodeid)
