"""A server behind the aggregator that accepts watches and never answers takes nothing from other users."""

from __future__ import annotations

import asyncio
from pathlib import Path

from custom_resources import eventually
from patience import PATIENCE
from tls_backends import Pki, api_service, backend, external_service
from whole_server import whole_server

from pilothouse.apiserver import Request, Response

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
WATCH = "/apis/example.com/v1/things?watch=true"
WATCHES = 60
"""Many more than there are seats."""


class HungServer:
    """Answers discovery; of watches it only counts how many have come."""

    def __init__(self) -> None:
        self.watches = 0
        self.all_came = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        if "watch" not in request.query_string:
            return Response(200, b"{}")
        self.watches += 1
        if self.watches == WATCHES:
            self.all_came.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing ends this watch but its client")


async def test_watches_on_a_hung_server_hold_no_seats(tmp_path: Path) -> None:
    hung, pki = HungServer(), Pki.make(tmp_path / "pki")
    async with (
        backend(hung, pki) as behind,
        whole_server(
            max_requests_inflight=6, max_mutating_requests_inflight=4, authorization_mode="AlwaysAllow"
        ) as server,
    ):
        made = api_service(service={"namespace": "default", "name": "web", "port": behind.port}, caBundle=pki.ca_bundle)
        await server.request("POST", "/api/v1/namespaces/default/services", external_service("web"))
        await server.request(
            "POST", API_SERVICES, {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", **made}
        )
        await eventually(server, 200, "GET", "/apis/example.com/v1")
        # The administrator is exempt from flow control; others are not.
        watches = [asyncio.create_task(server.request("GET", WATCH, impersonate_user="amy")) for _ in range(WATCHES)]
        try:
            async with asyncio.timeout(PATIENCE):
                await hung.all_came.wait()
            assert (await server.request("GET", "/api/v1/namespaces/default", impersonate_user="bob")).status == 200
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
