"""Admission webhooks over real TLS: each path answers as a test says, and what was asked is kept."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import orjson
from aiohttp import web
from webhook_server import WebhookServer, webhook_server
from whole_server import CONFIG_MAPS

from pilothouse.client import Json
from pilothouse.testing import API, Answer

Respond = Callable[[Json], Json | web.StreamResponse | Awaitable[web.StreamResponse]]
"""From the request in the review to the response in its answer, or to an answer of any kind."""

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


def allow(request: Json) -> Json:
    return {"allowed": True}


def patching(*operations: Json) -> Respond:
    """Answers with this patch."""
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def config_map(name: str = "one", **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


async def create(hooks: AdmissionWebhooks, obj: Json | None = None, query: str = "?dryRun=All") -> Answer:
    return await hooks.api.request("POST", CONFIG_MAPS + query, obj or config_map())


class AdmissionWebhooks:
    """`calls` are the paths and the requests in the order in which they came."""

    def __init__(self, api: API, server: WebhookServer) -> None:
        self.api = api
        self.server = server
        self.calls: list[tuple[str, Json]] = []
        self._responds: dict[str, Respond] = {}

    @property
    def called(self) -> list[str]:
        return [path for path, _ in self.calls]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        review = orjson.loads(await request.read())
        self.calls.append((request.path.strip("/"), review["request"]))
        response = self._responds[request.path.strip("/")](review["request"])
        if isinstance(response, Awaitable):
            return await response
        if isinstance(response, web.StreamResponse):
            return response
        answer = {**review, "response": {"uid": review["request"]["uid"], **response}}
        del answer["request"]
        return web.json_response(answer)

    def webhook(self, name: str, respond: Respond = allow, **fields: Any) -> Json:
        """For all writes of ConfigMaps, unless the fields say something else."""
        self._responds[name] = respond
        rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        defaults = {
            "name": f"{name}.example.com",
            "clientConfig": self.server.by_url(f"/{name}"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [rule],
        }
        return defaults | fields

    def configured(
        self, type: str, *webhooks: Json, name: str = "test"
    ) -> AbstractAsyncContextManager[list[tuple[str, Json]]]:
        """A configuration of the type, validating or mutating, as long as it is needed. Gives the calls since."""
        return _configured(self, type, webhooks, name)


@asynccontextmanager
async def _configured(hooks: AdmissionWebhooks, type: str, webhooks: tuple[Json, ...], name: str) -> Any:
    kind, path = f"{type.capitalize()}WebhookConfiguration", CONFIGURATIONS.format(type)
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
    created = await hooks.api.request("POST", path, {**body, "webhooks": list(webhooks)})
    assert created.status == 201, created.body
    hooks.calls.clear()
    try:
        yield hooks.calls
    finally:
        await hooks.api.request("DELETE", f"{path}/{name}")


@asynccontextmanager
async def admission_webhooks(api: API) -> Any:
    async def unset(_: web.Request) -> web.StreamResponse:
        raise AssertionError("set below")

    async with webhook_server(unset) as server:
        hooks = AdmissionWebhooks(api, server)
        server.answer = hooks.answer
        yield hooks
