"""/statusz, /flagz and /debug/flags of a whole server, and the paths and checks that it lists."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from whole_server import whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCEPTED = "only the following media types are accepted: application/json, application/yaml, text/plain"
HOOKS = [
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "storage-object-count-tracker-hook",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    async with whole_server(Path(tmp_path_factory.mktemp("pages")), request_timeout="59s") as server:
        yield server


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain"])
@pytest.mark.parametrize(("page", "line"), [("statusz", "Go version"), ("flagz", "request-timeout")])
async def test_a_page_is_text_for_people(api: API, page: str, line: str, accept: str) -> None:
    answer = await api.request("GET", f"/{page}", accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    text = answer.body.decode()
    assert text.startswith(f"\napiserver {page}\nWarning: This endpoint is not meant to be machine parseable,")
    assert any(each.startswith(line) for each in text.splitlines())


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
async def test_a_page_is_an_object_for_programs(api: API, version: str) -> None:
    form = f";g=config.k8s.io;v={version};as=Statusz"
    answer = await api.request("GET", "/statusz", accept=f"application/json{form}")
    assert answer.headers["content-type"] == f"application/json{form}"
    assert ("warning" in answer.headers) == (version == "v1alpha1")
    shown = answer.json
    assert (shown["kind"], shown["apiVersion"]) == ("Statusz", f"config.k8s.io/{version}")
    assert (shown["binaryVersion"], shown["emulationVersion"]) == ("1.36.4", "1.36")
    assert "/statusz" in shown["paths"]
    assert "/apis" not in shown["paths"]


async def test_the_flags_are_those_of_the_command_line(api: API) -> None:
    accept = "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    flags = (await api.request("GET", "/flagz", accept=accept)).json["flags"]
    assert (flags["request-timeout"], flags["etcd-prefix"]) == ("59s", "/registry")


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.kubernetes.protobuf", "text/html"])
async def test_a_page_without_a_kind_is_no_object(api: API, accept: str) -> None:
    answer = await api.request("GET", "/statusz", accept=accept)
    assert answer.status == 406
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["message"].endswith(ACCEPTED)


async def test_how_much_the_log_says_can_be_changed(api: API) -> None:
    before = logging.getLogger().level
    try:
        answer = await api.request("PUT", "/debug/flags/v", b"3")
        assert (answer.status, answer.body) == (200, b"successfully set klog.logging.verbosity to 3\n")
        assert logging.getLogger().level == logging.INFO - 3
    finally:
        logging.getLogger().setLevel(before)
    refused = await api.request("PUT", "/debug/flags/v", b"x")
    assert (refused.status, refused.body) == (400, b'strconv.ParseUint: parsing "x": invalid syntax\n')
    assert (await api.request("GET", "/debug/flags/v")).status == 406
    assert b"<title>/debug/flags/</title>" in (await api.request("GET", "/debug/flags")).body


async def test_upstreams_checks_are_there(api: API) -> None:
    paths = (await api.request("GET", "/")).json["paths"]
    assert {"/statusz", "/flagz", "/readyz/informer-sync"} <= set(paths)
    assert {f"/{root}/poststarthook/{hook}" for root in ("healthz", "livez", "readyz") for hook in HOOKS} <= set(paths)
    ready = (await api.request("GET", "/readyz?verbose")).body
    for check in ("informer-sync", *(f"poststarthook/{hook}" for hook in HOOKS)):
        assert f"[+]{check} ok\n".encode() in ready


async def test_the_proxy_to_peers_is_shown_as_disabled(api: API) -> None:
    """Requests for resources of a newer peer are not proxied, so neither a gate nor a check may claim it."""
    metrics = (await api.request("GET", "/metrics")).body.decode().splitlines()
    gate = 'kubernetes_feature_enabled{name="UnknownVersionInteroperabilityProxy",stage="BETA"} 0'
    assert any(line.startswith(gate) for line in metrics)
    assert b"peer" not in (await api.request("GET", "/readyz?verbose")).body
    leases = (await api.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")).json["items"]
    identity = [each for each in leases if "apiserver.kubernetes.io/identity" in each["metadata"].get("labels", {})]
    assert len(identity) == 1
    assert "annotations" not in identity[0]["metadata"]
