"""An API that another server has, used with stock kubectl like any other; and kubectl when that server has died."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT, PATIENCE
from remote_api import GROUP, RemoteAPI

GADGET = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 3}}
API_SERVICE = f"apiservice/v1.{GROUP}"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteAPI]:
    with RemoteAPI(tmp_path / "remote") as api:
        yield api


@pytest.fixture
def aggregated(remote: RemoteAPI, kubectl: Kubectl, tmp_path: Path) -> Iterator[Kubectl]:
    """With a discovery cache of its own, that knows nothing yet. Leaves nothing behind for other tests."""
    kubectl("apply", "-f", "-", stdin=remote.manifests())
    kubectl("wait", "--for=condition=Available", API_SERVICE, KUBECTL_TIMEOUT)
    kubectl.environment["HOME"] = str(tmp_path)
    yield kubectl
    kubectl("delete", API_SERVICE, "--ignore-not-found")


def until(right: Callable[[], bool]) -> None:
    """Each try asks the server anew, which takes its time."""
    end = time.monotonic() + PATIENCE
    while not right():
        assert time.monotonic() < end, "it never came to be"


def test_an_aggregated_api_is_listed_explained_and_used_like_any_other(aggregated: Kubectl) -> None:
    listed = aggregated("api-resources", f"--api-group={GROUP}")
    assert re.search(rf"^gadgets +{re.escape(GROUP)}/v1 +true +Gadget$", listed, re.MULTILINE)
    until(lambda: aggregated.run("explain", "gadgets").returncode == 0)
    assert "A gadget of another server." in aggregated("explain", "gadgets")
    assert "How big." in aggregated("explain", "gadgets.spec.size")
    until(lambda: f"/apis/{GROUP}/v1/gadgets" in json.loads(aggregated("get", "--raw", "/openapi/v2"))["paths"])
    assert aggregated("create", "-f", "-", stdin=json.dumps(GADGET)) == f"gadget.{GROUP}/g created\n"
    assert aggregated("get", "gadgets", "-o", "name") == f"gadget.{GROUP}/g\n"
    assert aggregated.json("get", "gadget", "g")["spec"] == {"size": 3}
    assert aggregated("delete", "gadget", "g").startswith(f'gadget.{GROUP} "g" deleted')


def test_when_its_server_dies_everything_else_goes_on(aggregated: Kubectl, remote: RemoteAPI) -> None:
    until(lambda: aggregated.run("explain", "gadgets").returncode == 0)
    remote.stop()
    aggregated("annotate", API_SERVICE, "seen=dead")  # has its availability checked now, not within half a minute
    aggregated("wait", "--for=condition=Available=false", API_SERVICE, KUBECTL_TIMEOUT)
    until(lambda: "gadgets" not in aggregated("api-resources", "--cached=false"))  # kubectl leaves out what is Stale
    assert "configmaps" in aggregated("api-resources")
    assert "Namespace provides a scope" in aggregated("explain", "namespaces")
    assert "How big." in aggregated("get", "--raw", f"/openapi/v3/apis/{GROUP}/v1")
    assert f"/apis/{GROUP}/v1/gadgets" in aggregated("get", "--raw", "/openapi/v2")
    assert "configmap/extension-apiserver-authentication" in aggregated(
        "get", "configmaps", "-n", "kube-system", "-o", "name"
    )
    aggregated("delete", API_SERVICE)
    until(lambda: GROUP not in aggregated("api-versions"))
    for document in ("/openapi/v2", "/openapi/v3"):
        assert GROUP not in aggregated("get", "--raw", document)
