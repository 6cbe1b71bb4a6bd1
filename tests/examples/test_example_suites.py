"""The suites of examples/testing: operators of several clients, tested by the pytest plugin."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from example_module import EXAMPLES

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

SUITES = ("kopf", "kr8s", "kubernetes", "kubernetes_asyncio", "lightkube", "pilothouse")
PLUGIN = "pilothouse.testing.pytest_plugin"


def test_every_suite_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    installed = [name for name in SUITES if find_spec(name)]
    assert {f"test_with_{name}.py" for name in SUITES} == {file.name for file in (EXAMPLES / "testing").glob("test_*")}
    files = [str(EXAMPLES / "testing" / f"test_with_{name}.py") for name in installed]
    plugins = ("-p", PLUGIN, "-p", "asyncio", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*plugins, "--rootdir", str(EXAMPLES / "testing"), *files)
    result.assert_outcomes(passed=4 * len(installed))
