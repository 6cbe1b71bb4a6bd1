"""The ways in which people break an aggregated API, and what the doctor prints about each: what it saw, what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from awaiting import until
from delegating_server import allow_delegation, delegating_server
from patience import PATIENCE
from tls_backends import Pki, api_service, backend, external_service

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.cli.doctor import main
from pilothouse.client.rest.client import Client
from pilothouse.machinery.objects import Json
from pilothouse.testing import API, server

SELECTED = {"ports": [{"port": 443}], "selector": {"app": "web"}}


@pytest.fixture
async def cluster() -> AsyncIterator[API]:
    async with server(authorization_mode="RBAC") as api:
        yield api


@pytest.fixture
def admin(cluster: API) -> Client:
    return cluster.client(in_process=True)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki.make(tmp_path / "backend")


class Doctor:
    def __init__(self, api: API, capsys: pytest.CaptureFixture[str]) -> None:
        self._api = api
        self._capsys = capsys

    async def examine(self, *words: str) -> tuple[int, list[str]]:
        """The exit code and the lines."""
        self._capsys.readouterr()
        arguments = ["apiservice", *words, f"--kubeconfig={self._api.kubeconfig}"]
        code = await asyncio.to_thread(main, arguments)
        return code, self._capsys.readouterr().out.splitlines()

    async def finds(self, step: str) -> str:
        """What is wrong with the step, and what to do about it, as it was printed."""
        code, lines = await self.examine("v1.example.com")
        at = next(index for index, line in enumerate(lines) if line.startswith(f"FAILED  {step} "))
        assert code == 1
        return "\n".join(line[24:] for line in lines[at : at + 2])


@pytest.fixture
def doctor(cluster: API, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(cluster, capsys)


async def _register(admin: Client, port: int = 443, *, service: Json | None = None, **spec: Any) -> None:
    """With a service, that is its spec; without one, it leads to this machine."""
    services = admin.resource("v1", "services", namespace="default")
    await services.create({"metadata": {"name": "web"}, "spec": service} if service else external_service("web"))
    place = {"namespace": "default", "name": "web", "port": port}
    await admin.resource("apiregistration.k8s.io/v1", "apiservices").create(api_service(service=place, **spec))


def _serving(group_version: str, *, after: float = 0.0) -> Handler:
    async def discovery(request: Request) -> Response:
        await asyncio.sleep(after)
        document = {"kind": "APIResourceList", "groupVersion": group_version, "resources": []}
        return Response(200, orjson.dumps(document))

    return discovery


async def test_a_wrong_port(admin: Client, doctor: Doctor) -> None:
    await _register(admin, service={"ports": [{"port": 8443}]})
    assert await doctor.finds("service") == (
        "Service default/web has no port 443; its ports: 8443\n"
        "→ set spec.service.port of the APIService to a port of the Service"
    )


async def test_an_external_name_behind_a_routing_aggregator(capsys: pytest.CaptureFixture[str]) -> None:
    async with server(enable_aggregator_routing=True) as api:
        admin = api.client(in_process=True)
        await _register(admin)
        services = admin.resource("apiregistration.k8s.io/v1", "apiservices")
        await until(services, "v1.example.com", lambda obj: "unsupported service type" in str(obj.get("status")))
        assert await Doctor(api, capsys).finds("service") == (
            "Service default/web is an ExternalName, but the aggregator connects to endpoints "
            "(--enable-aggregator-routing)\n"
            "→ create a Service without selector, and an EndpointSlice with the server's address; --register does both"
        )


async def test_a_wrong_ca(admin: Client, doctor: Doctor, pki: Pki, tmp_path: Path) -> None:
    other = Pki.make(tmp_path / "other", "another-ca")
    async with backend(_serving("example.com/v1"), pki) as running:
        await _register(admin, running.port, caBundle=other.ca_bundle)
        assert await doctor.finds("tls") == (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority\n"
            "→ set spec.caBundle to the CA that signed the server's certificate; currently: CN=another-ca"
        )


async def test_an_expired_certificate(admin: Client, doctor: Doctor, pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.controlplane.certificates.issue.LEAF_LIFE", timedelta(minutes=-1))
    async with backend(_serving("example.com/v1"), pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        seen, advice = (await doctor.finds("certificate")).splitlines()
        assert seen.startswith("certificate for web.default.svc; signed by CN=backends; expired on 20")
        assert advice == (
            "→ renew the certificate of the server, and restart the server if it does not reload certificates"
        )
        assert (await doctor.finds("tls")).splitlines() == [
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
            advice,
        ]


async def test_no_endpoints(admin: Client, doctor: Doctor) -> None:
    await _register(admin, service=SELECTED)
    assert await doctor.finds("endpoints") == (
        "Service default/web has no endpoints\n"
        "→ start the server, with the labels that the Service selects: kubectl get pods -n default -l app=web"
    )


async def test_endpoints_that_are_not_ready(admin: Client, doctor: Doctor) -> None:
    await _register(admin, service=SELECTED)
    part = {
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"port": 443, "name": ""}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": False}}],
    }
    await admin.resource("discovery.k8s.io/v1", "endpointslices", namespace="default").create(part)
    assert await doctor.finds("endpoints") == (
        "no endpoint of Service default/web is ready at the port's name\n"
        "→ find out why its pods are not ready: kubectl get pods -n default -l app=web"
    )


async def test_a_server_of_another_group(admin: Client, doctor: Doctor, pki: Pki) -> None:
    async with backend(_serving("example.com/v2"), pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        assert await doctor.finds("discovery") == (
            f"https://localhost:{running.port}/apis/example.com/v1 is a document of example.com/v2, "
            "not of example.com/v1\n"
            "→ name in the APIService the group and version that the server serves, "
            "or the Service that serves example.com/v1"
        )


async def test_a_server_that_does_not_know_the_group(admin: Client, doctor: Doctor, pki: Pki) -> None:
    async def serve(request: Request) -> Response:
        groups = [{"name": "other.com", "versions": [{"groupVersion": "other.com/v1"}]}]
        return Response(200 if request.path == "/apis" else 404, orjson.dumps({"groups": groups}))

    async with backend(serve, pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        seen, advice = (await doctor.finds("discovery")).splitlines()
        assert seen.startswith(f"https://localhost:{running.port}/apis/example.com/v1 answers 404 (")
    assert seen.endswith("): the server serves other.com/v1")
    assert advice.startswith("→ name in the APIService the group and version that the server serves")


async def test_a_server_that_takes_too_long(
    admin: Client, doctor: Doctor, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("backend", "apiservice"):
        monkeypatch.setattr(f"pilothouse.cli.diagnosis.{module}.TIMEOUT", 0.5)
    async with backend(_serving("example.com/v1", after=60), pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        assert await doctor.finds("discovery") == (
            f"https://localhost:{running.port}/apis/example.com/v1: no answer within 0.5 s, "
            "the timeout of the aggregator\n"
            "→ check the load and the log of the server, and the latency of its storage and of the cluster"
        )


async def test_a_server_that_is_slow_is_worth_a_note(
    admin: Client, doctor: Doctor, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.cli.diagnosis.answers.SLOW", 0.02)
    async with backend(_serving("example.com/v1", after=0.03), pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        _, lines = await doctor.examine("v1.example.com")
        seen = f"note    discovery       slow: https://localhost:{running.port}/apis/example.com/v1 answers 200 ("
    at = next(index for index, line in enumerate(lines) if line.startswith(seen))
    assert lines[at + 1].strip().startswith("→ check the load and the log of the server")


async def test_a_service_account_without_the_roles_for_delegation(admin: Client, doctor: Doctor) -> None:
    await _register(admin, service=SELECTED)
    pod = {"serviceAccountName": "web", "containers": [{"name": "web", "image": "web"}]}
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web", "more": "yes"}}, "spec": pod},
    }
    deployments = admin.resource("apps/v1", "deployments", namespace="default")
    await deployments.create({"metadata": {"name": "web"}, "spec": spec})
    _, lines = await doctor.examine("v1.example.com")
    assert [line[24:] for line in lines if "delegat" in line or "auth-reader" in line] == [
        "ServiceAccount default/web may not read ConfigMap kube-system/extension-apiserver-authentication",
        "→ kubectl create rolebinding -n kube-system default-web-auth-reader "
        "--role=extension-apiserver-authentication-reader --serviceaccount=default:web",
        "ServiceAccount default/web may not create tokenreviews and subjectaccessreviews",
        "→ kubectl create clusterrolebinding default-web-auth-delegator "
        "--clusterrole=system:auth-delegator --serviceaccount=default:web",
    ]


async def test_a_server_that_the_cluster_refuses_reviews(
    cluster: API, admin: Client, doctor: Doctor, tmp_path: Path
) -> None:
    await allow_delegation(admin, delegator=False)
    async with delegating_server(cluster, tmp_path) as extension:
        await _register(admin, extension.port, insecureSkipTLSVerify=True)
        assert await doctor.finds("delegation") == (
            "the cluster refuses subjectaccessreviews to the server, system:serviceaccount:wardle:api\n"
            "→ kubectl create clusterrolebinding wardle-api-auth-delegator "
            "--clusterrole=system:auth-delegator --serviceaccount=wardle:api"
        )


async def test_a_server_that_takes_the_aggregator_for_nobody(
    cluster: API, admin: Client, doctor: Doctor, pki: Pki
) -> None:
    async def refuse(request: Request) -> Response:
        if request.header(b"x-remote-user") == "system:kube-aggregator":
            return Response(200, b"{}")  # the aggregator's own probes, so that requests of users are let through
        said = 'forbidden: User "system:anonymous" cannot get path "/apis/example.com/v1"'
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": said}
        return Response(403, orjson.dumps(status | {"code": 403}), [(b"content-type", b"application/json")])

    async with backend(refuse, pki) as running:
        await _register(admin, running.port, caBundle=pki.ca_bundle)
        async with asyncio.timeout(PATIENCE):
            while (await cluster.request("GET", "/apis/example.com/v1")).status != 403:
                continue  # until the aggregator has found out that it answers
        assert (await doctor.finds("aggregator")).splitlines() == [
            'GET /apis/example.com/v1: forbidden: User "system:anonymous" cannot get path "/apis/example.com/v1"',
            "→ let the server read ConfigMap kube-system/extension-apiserver-authentication (Role "
            "extension-apiserver-authentication-reader), trust the front proxies in it, "
            "and allow system:masters everything",
        ]


async def test_a_server_that_does_not_run(admin: Client, doctor: Doctor, pki: Pki) -> None:
    async with backend(_serving("example.com/v1"), pki) as stopped:
        port = stopped.port
    await _register(admin, port, caBundle=pki.ca_bundle)
    assert await doctor.finds("tcp") == (
        f"dial tcp localhost:{port}: connect: connection refused\n"
        f"→ start the server on port {port}, and open the network path from this machine"
    )


async def test_without_a_name_all_that_lead_elsewhere_are_examined(admin: Client, doctor: Doctor, pki: Pki) -> None:
    assert await doctor.examine() == (0, ["No APIService refers to another server: there is nothing to diagnose."])
    await _register(admin, service={"ports": [{"port": 8443}]})
    code, lines = await doctor.examine()
    assert code == 1
    assert [line for line in lines if line.startswith("APIService")] == ["APIService v1.example.com"]
    assert any("has no port 443" in line for line in lines)
