"""A pytest plugin that notes which lines each test reaches, and how long each test that passes takes.

It runs in every process that runs tests. A server that a test starts in a process of its own is followed too, as long
as it ends by itself: coverage takes the test's name from the environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

TEST = "MUTATION_TEST"  # the test that starts a process


class ReachPlugin:
    def __init__(self, config: pytest.Config) -> None:
        self._folder = Path(os.environ["MUTATION_CACHE"])
        self._is_worker = hasattr(config, "workerinput")
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._coverage = coverage.Coverage(config_file=str(self._folder / "coveragerc"), data_suffix=True)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        os.environ[TEST] = item.nodeid
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")
            os.environ[TEST] = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        if not self._is_worker:
            passed = {test: seconds for test, seconds in self._seconds.items() if test not in self._failed}
            (self._folder / "passed.json").write_text(json.dumps(passed))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ReachPlugin(config))
