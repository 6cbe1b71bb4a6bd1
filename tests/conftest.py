"""Runs in CI fail when a test is skipped for a reason that is not in the list: nobody reads what was left out."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import fast_lane
import pytest
from etcd_process import NO_ETCD_THAT_ANSWERS, NO_ETCD_THAT_KEEPS_WRITES
from hypothesis import HealthCheck, is_hypothesis_test, settings
from kube_apiserver import MISSING as NO_KUBE_APISERVER
from kubectl import MISSING
from network_namespaces import NO_NAMESPACES
from node_packages import NO_NODE, NO_PAGE, NO_REGISTRY
from traced_calls import NO_STRACE

from pilothouse.machinery import release

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Tests start hundreds of servers: to compile all modules for each of them takes longer than most tests do.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / ".pytest_cache/bytecode")

# Most tests expect answers that were recorded from v1.36.4, the base of all recordings: this process, and the servers
# that tests start with `pilothouse.testing` and tests/support, implement 1.36. Tests of the default version start
# `pilothouse` as users do, and the recorded answers of each version are replayed.
release.choose("1.36")

# How long a machine takes, or stands still, is no fault of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
SHARE_OF_EXAMPLES = int(os.environ.get("PILOTHOUSE_TEST_EXAMPLES", "3"))
"""Randomized tests try one in so many of their examples, and other ones on every run; 1 for all."""

ALLOWED_SKIPS = {
    MISSING: "kubectl cannot be installed by pip",
    NO_KUBE_APISERVER: "kube-apiserver cannot be installed by pip",
    NO_NODE: "node cannot be installed by pip",
    NO_PAGE: "node cannot be installed by pip",
    NO_REGISTRY: "a machine's network is its own",
    NO_ETCD_THAT_ANSWERS: "the etcd that PyPI has is 3.5.1",
    NO_ETCD_THAT_KEEPS_WRITES: "the etcd that PyPI has is 3.5.1",
    "this store may leave a request for progress unanswered": "the etcd that PyPI has is 3.5.1",
    "this user may not mount file systems": "a full disk is a small file system of its own",
    "this machine has no Chromium, or no Node.js to build the page": "browsers cannot be installed by pip",
    NO_STRACE: "strace cannot be installed by pip, and some machines forbid it",
    NO_NAMESPACES: "a network that fails is made by root",
    "this machine has no IPv6": "a machine's network is its own",
    "needs node and the packages of tools/diagrams": "another test compares digests of the diagrams' sources",
    "this machine has no git": "git cannot be installed by pip",
    "nox is not installed": "nox is for development, and `test` does not require it",
    "this machine has only a loopback address": "a machine's network is its own",
}
"""Reasons that tests give, and why a run without them is still a run."""

ONE_BY_ONE = ("tests/apiserver/storage/", "tests/docs/", "tests/explore/", "tests/operator/", "tests/testing/")
"""Folders whose long tests measure no latency, and may run beside each other."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no other test files for the fast lane and for the second tier: importing all of them takes long."""
    if collection_path.suffix != ".py":
        return None
    match config.option.markexpr:
        case "fast":
            return True if collection_path not in fast_lane.files() else None
        case "slow":
            return True if "mark.slow" not in _text(collection_path) else None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the fast lane, except those that are marked as slow; limit the examples of randomized tests."""
    for item in items:
        if item.path in fast_lane.files() and item.get_closest_marker("slow") is None:
            item.add_marker("fast")
    randomized = (item for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj))
    for holder, name in {_holder_of_settings(item) for item in randomized}:
        whole = getattr(holder, name)
        if not whole.derandomize:
            setattr(holder, name, settings(whole, max_examples=max(5, whole.max_examples // SHARE_OF_EXAMPLES)))


def _holder_of_settings(item: pytest.Function) -> tuple[object, str]:
    """Return the object and its attribute: the class of a state machine, or the function that all parameters share."""
    function = getattr(item.obj, "__func__", item.obj)
    attribute = "_hypothesis_internal_use_settings"
    return (function, attribute) if hasattr(function, attribute) else (item.cls, "settings")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Tests wait for other processes and for disks during 40 % of their time: three processes keep two cores busy."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute files as `--dist loadfile` does, except that long tests without shared fixtures go one by one: the
    last file to end would otherwise be the longest."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler.loadfile import LoadFileScheduling

    def file_or_test(nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        text = _text(config.rootpath / file)
        is_long = "mark.slow" in text and file.startswith(ONE_BY_ONE)
        return nodeid if is_long and 'scope="' not in text else file

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = file_or_test
    return scheduler


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Restore the root logger after each test. A command that runs in the process of a test logs to the stderr of that
    test; later, with the stream closed, no server in the process would become ready."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    result = yield
    root.handlers[:] = handlers
    root.setLevel(level)
    return result


def pytest_collection_finish() -> None:
    """What was collected stays to the end: looking through it for garbage at every turn is a good part of a run."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in _unexpected(terminalreporter):
        terminalreporter.write_line(f"skipped, though nothing allows it in CI: {reason}", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and _unexpected(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unexpected(reporter: pytest.TerminalReporter) -> list[str]:
    if not os.environ.get("CI"):
        return []
    skipped = (report.longrepr for report in reporter.stats.get("skipped", []))
    reasons = (longrepr[2].removeprefix("Skipped: ") for longrepr in skipped if isinstance(longrepr, tuple))
    return [reason for reason in reasons if reason not in ALLOWED_SKIPS]
