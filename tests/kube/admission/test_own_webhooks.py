"""Webhooks behind the Service `kubernetes`: asked in this process, as the server itself.

They answer behind an aggregated API, which hears from the server on whose behalf it is asked.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from admission_webhooks import CONFIGURATIONS
from custom_resources import eventually
from tls_backends import Pki, api_service, backend, external_service
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.apiserver.http import Request, Response
from pilothouse.testing import API

REVIEWS = "/apis/example.com/v1/reviews"
SERVICE = {"service": {"namespace": "default", "name": "kubernetes", "path": REVIEWS}}


async def register(api: API, pki: Pki, port: int) -> None:
    """Returns when the aggregated API of the reviews can be reached."""
    service = {"namespace": "default", "name": "web", "port": port}
    made = api_service(service=service, caBundle=pki.ca_bundle)
    assert (await api.request("POST", "/api/v1/namespaces/default/services", external_service("web"))).status == 201
    assert (await api.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", made)).status == 201
    await eventually(api, 200, "GET", REVIEWS)


@pytest.mark.parametrize(
    "config",
    [SERVICE, {"url": f"https://kubernetes.default.svc{REVIEWS}"}],
)
async def test_this_server_asks_itself(tmp_path: Path, config: dict[str, Any]) -> None:
    askers: list[str] = []

    async def review(request: Request) -> Response:
        if request.method != "POST":
            return Response(200, b"{}", [(b"content-type", b"application/json")])
        asked = orjson.loads(await request.read_body(1 << 20))
        askers.append(request.header(b"x-remote-user"))
        if asked["request"]["name"] == "slow":
            await asyncio.sleep(30)
        response = {"uid": asked["request"]["uid"], "allowed": False, "status": {"message": "by myself"}}
        answer = {"kind": asked["kind"], "apiVersion": asked["apiVersion"], "response": response}
        return Response(200, orjson.dumps(answer), [(b"content-type", b"application/json")])

    pki = Pki.make(tmp_path / "pki")
    async with whole_server() as api, backend(review, pki) as behind:
        await register(api, pki, behind.port)
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        webhook = {"name": "own.example.com", "clientConfig": config, "rules": [rule], "timeoutSeconds": 1}
        webhook |= {"admissionReviewVersions": ["v1"], "sideEffects": "None"}
        body = {"metadata": {"name": "own"}, "webhooks": [webhook]}
        assert (await api.request("POST", CONFIGURATIONS.format("validating"), body)).status == 201
        refused = await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
        assert refused.json["message"] == 'admission webhook "own.example.com" denied the request: by myself'
        if config is SERVICE:
            slow = await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "slow"}})
            assert slow.json["message"].endswith("failed to call webhook: context deadline exceeded")
    assert set(askers) == {"system:apiserver"}
