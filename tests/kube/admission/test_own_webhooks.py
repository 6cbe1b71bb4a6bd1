"""Webhooks behind the Service `kubernetes`: asked in this process, as the server itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from admission_webhooks import CONFIGURATIONS
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.apiserver.http import Request, Response

SERVICE = {"service": {"namespace": "default", "name": "kubernetes", "path": "/own/review"}}


@pytest.mark.parametrize(
    "config",
    [SERVICE, {"url": "https://kubernetes.default.svc/own/review"}],
)
async def test_this_server_asks_itself(tmp_path: Path, config: dict[str, Any]) -> None:
    askers: list[str] = []

    async def review(request: Request) -> Response:
        asked = orjson.loads(await request.read_body(1 << 20))
        askers.append(request.user.name)
        if asked["request"]["name"] == "slow":
            await asyncio.sleep(30)
        response = {"uid": asked["request"]["uid"], "allowed": False, "status": {"message": "by myself"}}
        answer = {"kind": asked["kind"], "apiVersion": asked["apiVersion"], "response": response}
        return Response(200, orjson.dumps(answer), [(b"content-type", b"application/json")])

    async with whole_server(tmp_path) as api:
        api.generic.mux.handle("/own/review", review)
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
