"""The hooks that start the aggregation of discovery and OpenAPI."""

from __future__ import annotations

import asyncio

import orjson
from api_services import RemoteServer, api_service, group

from pilothouse.aggregator.server import Aggregation
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.hooks import HookContext, run_post_start_hooks
from pilothouse.apiserver.server.server import GenericAPIServer

NAMES = ["apiservice-discovery-controller", "apiservice-openapi-controller", "apiservice-openapiv3-controller"]


async def _nobody(request: Request) -> Response:
    return Response(404)


async def _hangs(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def _freshness_at_the_start(handler: Handler, *, patience: float) -> str:
    generic, known, context = GenericAPIServer("kube-aggregator", _nobody), asyncio.Event(), HookContext()
    aggregation = Aggregation(generic, {}, first_answers_within=patience)
    aggregation.add_discovery_hook(generic, known)
    aggregation.add_openapi_hooks(generic)
    assert [hook.name for hook in generic.post_start_hooks()] == NAMES
    starting = asyncio.create_task(run_post_start_hooks(generic.post_start_hooks(), context))
    aggregation.discovery.add_api_service(handler, api_service("a.io"))
    known.set()
    await starting
    document = orjson.loads(aggregation.discovery.document().body(JSON))
    await context.stop()
    freshness: str = document["items"][0]["versions"][0]["freshness"]
    return freshness


async def test_a_start_waits_for_the_first_answers() -> None:
    server = RemoteServer()
    server.serve_groups(group("a.io", v1=["things"]))
    assert await _freshness_at_the_start(server, patience=10.0) == "Current"


async def test_a_start_does_not_wait_long_for_a_server_that_does_not_answer() -> None:
    assert await _freshness_at_the_start(_hangs, patience=0.05) == "Stale"
