"""The pytest plugin: a real API server for each test, reset to a template.

def test_a_namespace_is_active(kube_client):
    created = kube_client.resource("v1", "namespaces").create({"metadata": {"name": "mine"}})
    assert created["status"]["phase"] == "Active"

`pilothouse_server` is one server per test process; `pilothouse` is the server of one test, reset to its template before
the test; `kubeconfig` is its path; `kube_client` is its client; `pilothouse_webhooks` is the address of its webhooks.
`pilothouse_clusters` is several clusters; `pilothouse_explore` explores an explore.yaml. In `async def` tests, the
methods of `pilothouse`, `pilothouse_clusters` and
`kube_client` are coroutines.
Before a test uses one of these fixtures, only pytest is imported.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pilothouse.machinery.release import ReleaseAlreadyChosen, choose
from pilothouse.testing.pytest_plugin.settings import (
    CLUSTERS_MARKER,
    EXPLORE,
    KUBECONFIG,
    MARKER,
    MATRIX,
    add_options,
    groups_of_item,
    is_pinned,
    settings_of_item,
    settings_of_session,
    versions_of_session,
)
from pilothouse.testing.pytest_plugin.threads import let_threads_add_loggers, skip_assertion_rewriting

if TYPE_CHECKING:
    from pilothouse.client.blocking import BlockingClient
    from pilothouse.client.rest.client import Client
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.cluster_set import BlockingClusters
    from pilothouse.testing.cluster_set import Clusters as SeveralClusters
    from pilothouse.testing.pytest_plugin.clusters import Clusters, OneTest, SetTest
    from pilothouse.testing.pytest_plugin.webhooks import WebhookAddress

_TEST = pytest.StashKey["OneTest"]()
_SET: pytest.StashKey[SetTest] = pytest.StashKey()
VERSION_PROPERTY = "kubernetes_version"
"""Property of a test's report: the Kubernetes version of its server."""

skip_assertion_rewriting()  # at load time, because a conftest.py may import any module
let_threads_add_loggers()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.addinivalue_line("markers", CLUSTERS_MARKER)
    versions = versions_of_session(config) or [settings_of_session(config).kubernetes_version]
    if len(versions) == 1 and versions[0]:
        with suppress(ReleaseAlreadyChosen):  # then servers of the version run in processes of their own
            choose(versions[0])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    versions = versions_of_session(metafunc.config)
    if versions and MATRIX in metafunc.fixturenames and not is_pinned(metafunc.definition.iter_markers()):
        metafunc.parametrize(MATRIX, versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def _pilothouse_version(request: pytest.FixtureRequest) -> str:
    """The Kubernetes version of this test in the matrix, or an empty string."""
    return str(getattr(request, "param", ""))


@pytest.fixture(scope="session")
def _pilothouse_clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    from pilothouse.testing.pytest_plugin.clusters import Clusters

    with Clusters(request.config.getoption(KUBECONFIG)) as clusters:
        yield clusters


@pytest.fixture(scope="session")
def pilothouse_server(
    request: pytest.FixtureRequest, _pilothouse_clusters: Clusters, _pilothouse_version: str
) -> BlockingAPI:
    """The server that all tests of this process share, with the options of the configuration and the command line.

    Objects stay until a test that uses `pilothouse` begins.
    """
    return _pilothouse_clusters.get(settings_of_session(request.config, _pilothouse_version)).api


@pytest.fixture
def pilothouse_explore(request: pytest.FixtureRequest) -> Callable[[str | Path], Any]:
    """Explore a scenario: `pilothouse_explore("explore.yaml")`, relative to the file of the test.

    With `--pilothouse-explore`, the scenario runs with every perturbation of its plan; without the option, once and
    undisturbed. Raises AssertionError with one page for each bug.
    """

    def explore(file: str | Path) -> Any:
        explore_file = import_module("pilothouse.explore.pytest_plugin").explore_file
        return explore_file(request.path.parent / file, whole=bool(request.config.getoption(EXPLORE)))

    return explore


@pytest.fixture
def _pilothouse_test(
    request: pytest.FixtureRequest,
    _pilothouse_clusters: Clusters,
    _pilothouse_version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OneTest]:
    settings = settings_of_item(request.node, _pilothouse_version)
    if settings.kubernetes_version:
        request.node.user_properties.append((VERSION_PROPERTY, settings.kubernetes_version))
    cluster = _pilothouse_clusters.get(settings)
    with cluster.one_test() as test:
        request.node.stash[_TEST] = test
        monkeypatch.setenv("KUBECONFIG", str(test.api.kubeconfig))
        _configure_official_clients(monkeypatch, str(test.api.kubeconfig))
        yield test


def _configure_official_clients(monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
    """Make the kubeconfig the default of the official clients, as far as they are imported: they read KUBECONFIG once,
    when they are imported.
    """
    for package in ("kubernetes", "kubernetes_asyncio"):
        module = sys.modules.get(f"{package}.config.kube_config")
        if hasattr(module, "KUBE_CONFIG_DEFAULT_LOCATION"):
            monkeypatch.setattr(module, "KUBE_CONFIG_DEFAULT_LOCATION", kubeconfig)
    client, config = sys.modules.get("kubernetes.client"), sys.modules.get("kubernetes.config")
    if client is not None and config is not None:
        monkeypatch.setattr(client.Configuration, "_default", None)
        config.load_kube_config(config_file=kubeconfig)


@pytest.fixture
def pilothouse(request: pytest.FixtureRequest, _pilothouse_test: OneTest) -> BlockingAPI | API:
    """A server with the options of this test, reset to its template. `KUBECONFIG` is set as well.

    Its methods are coroutines in `async def` tests (any event loop), and block otherwise.
    """
    return _pilothouse_test.async_api() if _is_async(request) else _pilothouse_test.api


@pytest.fixture
def pilothouse_clusters(
    request: pytest.FixtureRequest,
    _pilothouse_clusters: Clusters,
    _pilothouse_version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[BlockingClusters | SeveralClusters]:
    """The clusters of the marker of the same name, reset to their template. `KUBECONFIG` has a context for each."""
    from pilothouse.testing.pytest_plugin.any_loop import AnyLoopClusters
    from pilothouse.testing.pytest_plugin.clusters import one_test_of

    settings = settings_of_item(request.node, _pilothouse_version)
    with one_test_of(_pilothouse_clusters.get_set(settings, groups_of_item(request.node))) as test:
        request.node.stash[_SET] = test
        monkeypatch.setenv("KUBECONFIG", str(test.clusters.kubeconfig))
        _configure_official_clients(monkeypatch, str(test.clusters.kubeconfig))
        yield AnyLoopClusters(test.clusters) if _is_async(request) else test.clusters


@pytest.fixture
def kubeconfig(_pilothouse_test: OneTest) -> Path:
    """Path of the administrator's kubeconfig of the test's server."""
    return _pilothouse_test.api.kubeconfig


@pytest.fixture
def kube_client(request: pytest.FixtureRequest, _pilothouse_test: OneTest) -> BlockingClient | Client:
    """A client of the administrator: async (any event loop) in `async def` tests, blocking otherwise."""
    blocking = _pilothouse_test.api.client()
    if not _is_async(request):
        return blocking
    from pilothouse.testing.pytest_plugin.any_loop import client_for_any_loop

    return client_for_any_loop(blocking)


def _is_async(request: pytest.FixtureRequest) -> bool:
    return inspect.iscoroutinefunction(getattr(request.node, "obj", None))


@pytest.fixture
def pilothouse_webhooks(_pilothouse_test: OneTest) -> WebhookAddress:
    """Address and certificate of the test's webhooks."""
    if _pilothouse_test.webhooks is None:
        pytest.fail(
            'pilothouse: pilothouse_webhooks needs an address: set webhooks=("127.0.0.1", 0) in the marker',
            pytrace=False,
        )
    return _pilothouse_test.webhooks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for test in (item.stash.get(_TEST, None), item.stash.get(_SET, None)):
        if test is not None and report.failed and report.when == "call":
            report.sections.extend(test.story())
    return report


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the results of each Kubernetes version of the matrix."""
    counts: dict[str, dict[str, int]] = {}
    for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in terminalreporter.getreports(outcome):
            if version := dict(getattr(report, "user_properties", ())).get(VERSION_PROPERTY):
                of_version = counts.setdefault(str(version), {})
                of_version[outcome] = of_version.get(outcome, 0) + 1
    if counts and versions_of_session(config):
        terminalreporter.section("Kubernetes versions")
        for version, outcomes in sorted(counts.items()):
            text = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            terminalreporter.write_line(f"{version}: {text}")
