"""A signing request on its way through a whole server."""

from __future__ import annotations

from pathlib import Path

from signing_requests import new_certificate, new_request
from whole_server import whole_server

from pilothouse.machinery.objects import Json

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PATCH = "application/merge-patch+json"


async def test_a_request_is_asked_approved_and_signed(tmp_path: Path) -> None:
    spec: Json = {"request": new_request("dev"), "signerName": "example.com/s", "usages": ["client auth"]}
    spec["expirationSeconds"] = 3600
    async with whole_server(tmp_path) as server:
        created = await server.request("POST", PATH, {"metadata": {"name": "c"}, "spec": spec | {"username": "forged"}})
        assert created.json["spec"]["username"] == "pilothouse-testing"
        approved: Json = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        assert (await server.request("PATCH", f"{PATH}/c/status", approved, media=PATCH)).status == 422
        assert (await server.request("PATCH", f"{PATH}/c/approval", approved, media=PATCH)).status == 200
        signed: Json = {"status": {"certificate": new_certificate()}}
        assert (await server.request("PATCH", f"{PATH}/c/status", signed, media=PATCH)).status == 200
        metrics = (await server.request("GET", "/metrics", accept="*/*")).body.decode()
        for what in ("requested", "honored"):
            counted = f'apiserver_certificates_registry_csr_{what}_duration_total{{signerName="other"}} 1'
            assert counted in metrics
        status = (await server.request("GET", f"{PATH}/c")).json["status"]
        assert (status["conditions"][0]["type"], status["certificate"]) == ("Approved", new_certificate())
