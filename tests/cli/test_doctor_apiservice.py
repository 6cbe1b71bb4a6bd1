"""The doctor's findings about APIServices of a real server, with real servers behind them or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from serving_process import ServeProcess
from tls_backends import Pki, api_service, backend

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.cli.diagnosis.apiservice import APIServiceDoctor
from pilothouse.cli.diagnosis.findings import Finding
from pilothouse.cli.doctor import main
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    process = ServeProcess(tmp_path_factory.mktemp("doctor") / "data")
    yield process
    process.close()


@pytest.fixture
async def client(cluster: ServeProcess) -> AsyncIterator[Client]:
    """No APIService and no Service of another test is left."""
    async with connect(load_kubeconfig(cluster.data_dir / "admin.kubeconfig")) as made:
        for resource, name in ((_api_services(made), "v1.example.com"), (_services(made), "web")):
            try:
                await resource.delete(name)
            except NotFound:
                continue
        yield made


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki.make(tmp_path / "pki")


def _api_services(client: Client) -> ResourceClient:
    return client.resource("apiregistration.k8s.io/v1", "apiservices")


def _services(client: Client) -> ResourceClient:
    return client.resource("v1", "services", namespace="default")


async def _register(client: Client, port: int, **spec: Any) -> None:
    await _services(client).create(
        {"metadata": {"name": "web"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    )
    obj: Json = api_service(service={"namespace": "default", "name": "web", "port": port}, **spec)
    await _api_services(client).create(obj)


async def _findings(client: Client, name: str = "v1.example.com", proxy: KeyPair | None = None) -> dict[str, str]:
    """By step, without the steps about the condition, which another part keeps."""
    found = [finding async for finding in APIServiceDoctor(client, proxy).examine(name)]
    return {each.step: f"{each.outcome}: {each.text}" for each in found if each.step != "apiservice"}


async def _finding(client: Client, step: str) -> Finding:
    found = [finding async for finding in APIServiceDoctor(client).examine("v1.example.com")]
    return next(each for each in found if each.step == step)


async def discovery(request: Request) -> Response:
    return Response(200, orjson.dumps({"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": []}))


async def test_an_apiservice_that_does_not_exist(client: Client) -> None:
    found = [finding.text async for finding in APIServiceDoctor(client).examine("v1.none")]
    assert found == ["there is no APIService v1.none"]


async def test_a_local_one_needs_no_service(client: Client) -> None:
    found = await _findings(client, "v1.apps")
    assert found["service"] == "ok: none: the API server serves this group version itself"
    assert found["aggregator"].startswith("ok: GET /apis/apps/v1 lists ")


async def test_a_service_that_is_missing_or_has_no_endpoints(client: Client) -> None:
    await _api_services(client).create(api_service())
    assert (await _findings(client))["service"] == "FAILED: there is no Service default/web"
    await _services(client).create({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 444}]}})
    found = await _findings(client)
    assert found["service"] == "FAILED: Service default/web has no port 443; its ports: 444"
    await _services(client).update({**await _services(client).get("web"), "spec": {"ports": [{"port": 443}]}})
    assert (await _findings(client))["endpoints"] == "FAILED: Service default/web has no endpoints"


async def test_a_server_that_is_well_passes_every_step(client: Client, pki: Pki) -> None:
    async with backend(discovery, pki) as server:
        await _register(client, server.port, caBundle=pki.ca_bundle)
        found, port = await _findings(client), server.port
    assert found["service"] == "ok: Service default/web stands for localhost"
    assert found["tcp"].startswith(f"ok: localhost:{port} accepts connections")
    assert found["certificate"].startswith("ok: certificate for web.default.svc; signed by CN=backends; until ")
    assert found["tls"] == "ok: the certificate is valid for web.default.svc"
    assert " answers 200 (" in found["discovery"]


async def test_nothing_listens(client: Client) -> None:
    await _register(client, 1, insecureSkipTLSVerify=True)
    assert (await _findings(client))["tcp"] == "FAILED: dial tcp localhost:1: connect: connection refused"


async def test_a_certificate_of_another_ca_or_for_another_name(client: Client, pki: Pki, tmp_path: Path) -> None:
    other = Pki.make(tmp_path / "other", "other")
    async with backend(discovery, pki, names=("elsewhere",)) as server:
        await _register(client, server.port, caBundle=other.ca_bundle)
        found = (await _findings(client))["tls"]
        assert found == "FAILED: tls: failed to verify certificate: x509: certificate signed by unknown authority"
        await _api_services(client).patch("v1.example.com", {"spec": {"caBundle": pki.ca_bundle}})
        found = (await _findings(client))["tls"]
        assert found.endswith("x509: certificate is valid for elsewhere, not web.default.svc")


async def test_any_certificate_may_do_and_then_the_answer_still_counts(client: Client, pki: Pki) -> None:
    async def broken(request: Request) -> Response:
        return Response(500, b"oh no")

    async with backend(broken, pki) as server:
        await _register(client, server.port, insecureSkipTLSVerify=True)
        found = await _findings(client)
    assert found["tls"].startswith("note: every certificate is accepted")
    assert found["discovery"].startswith("FAILED: ")
    assert " answers 500 (" in found["discovery"]


async def test_a_server_that_does_not_speak_tls(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr("pilothouse.cli.diagnosis.backend.TIMEOUT", 0.1)
    async with await asyncio.start_server(answer_plainly, "127.0.0.1", 0) as plain:
        await _register(client, plain.sockets[0].getsockname()[1], insecureSkipTLSVerify=True)
        finding = await _finding(client, "tls")
        assert finding.text == "http: server gave HTTP response to HTTPS client"
        assert "serves TLS" in finding.advice
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        await _api_services(client).patch("v1.example.com", {"spec": {"service": {"port": port}}})
        finding = await _finding(client, "tls")
        assert finding.text == "no handshake within 0.1 s"
        assert "serves TLS" in finding.advice


async def test_a_server_that_does_not_believe_the_aggregator(client: Client, pki: Pki) -> None:
    async def refuse(request: Request) -> Response:
        return Response(401, b"who?")

    async with backend(refuse, pki) as server:
        await _register(client, server.port, caBundle=pki.ca_bundle)
        assert " answers 401 (" in (await _findings(client))["authentication"]
        assert (await _findings(client))["authentication"].startswith("note: ")
        assert (await _findings(client, proxy=pki.client()))["authentication"].startswith("FAILED: ")


def test_the_command_prints_the_steps_and_exits_with_the_verdict(
    cluster: ServeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = f"--kubeconfig={cluster.data_dir / 'admin.kubeconfig'}"
    assert main(["apiservice", "v1.apps", kubeconfig]) == 0
    assert capsys.readouterr().out.startswith("ok      apiservice      Available is True since ")
    assert main(["apiservice", "v1.none", kubeconfig]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED  apiservice      there is no APIService v1.none",
        "                        → name the APIService as VERSION.GROUP",
    ]
    assert main(["apiservice", "v1.apps", "--kubeconfig=/nowhere"]) == 2
