"""The pytest plugin: a real API server in every test that asks for one, as the template left it.

def test_a_namespace_is_active(kube_client):
    created = kube_client.resource("v1", "namespaces").create({"metadata": {"name": "mine"}})
    assert created["status"]["phase"] == "Active"

`pilothouse_server` is one server for each process that runs tests, `pilothouse` is the server of one test, put back to
its template before the test begins, `kubeconfig` its path, `kube_client` a client of it, `pilothouse_webhooks` where
its webhook configurations point to. Nothing but pytest is imported before a test uses one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pilothouse.testing.pytest_plugin.rewriting import rewrite_no_module_of_ours
from pilothouse.testing.pytest_plugin.settings import (
    KUBECONFIG,
    MARKER,
    add_options,
    settings_of_item,
    settings_of_session,
)

if TYPE_CHECKING:
    from pilothouse.client.blocking import BlockingClient
    from pilothouse.client.rest.client import Client
    from pilothouse.testing.api import BlockingAPI
    from pilothouse.testing.pytest_plugin.clusters import Clusters, OneTest
    from pilothouse.testing.pytest_plugin.webhooks import WebhookPlace

_TEST = pytest.StashKey["OneTest"]()

rewrite_no_module_of_ours()  # as soon as pytest loads this: a conftest.py may import anything


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(scope="session")
def _pilothouse_clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    from pilothouse.testing.pytest_plugin.clusters import Clusters

    with Clusters(request.config.getoption(KUBECONFIG)) as clusters:
        yield clusters


@pytest.fixture(scope="session")
def pilothouse_server(request: pytest.FixtureRequest, _pilothouse_clusters: Clusters) -> BlockingAPI:
    """The server that all tests of this process share, with the options of the configuration and the command line.

    What is written to it stays until a test that uses `pilothouse` begins.
    """
    return _pilothouse_clusters.get(settings_of_session(request.config)).api


@pytest.fixture
def _pilothouse_test(
    request: pytest.FixtureRequest, _pilothouse_clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OneTest]:
    cluster = _pilothouse_clusters.get(settings_of_item(request.node))
    with cluster.one_test() as test:
        request.node.stash[_TEST] = test
        monkeypatch.setenv("KUBECONFIG", str(test.api.kubeconfig))
        yield test


@pytest.fixture
def pilothouse(_pilothouse_test: OneTest) -> BlockingAPI:
    """A server with the options of this test and nothing in it but its template. `KUBECONFIG` names it, too."""
    return _pilothouse_test.api


@pytest.fixture
def kubeconfig(pilothouse: BlockingAPI) -> Path:
    """The path of a kubeconfig of the test's server, with every right."""
    return pilothouse.kubeconfig


@pytest.fixture
def kube_client(request: pytest.FixtureRequest, _pilothouse_test: OneTest) -> BlockingClient | Client:
    """A client with every right: one to await in `async def` tests, under whatever runs them; a blocking one else."""
    blocking = _pilothouse_test.api.client()
    if not inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        return blocking
    from pilothouse.testing.pytest_plugin.any_loop import client_for_any_loop

    return client_for_any_loop(blocking)


@pytest.fixture
def pilothouse_webhooks(_pilothouse_test: OneTest) -> WebhookPlace:
    """Where webhooks are to be served, and with which certificate."""
    if _pilothouse_test.webhooks is None:
        pytest.fail('pilothouse: no marker says webhooks=("127.0.0.1", 0), or where else they are', pytrace=False)
    return _pilothouse_test.webhooks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    test = item.stash.get(_TEST, None)
    if test is not None and report.failed and report.when == "call":
        report.sections.extend(test.story())
    return report
