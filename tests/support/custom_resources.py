"""Definitions of custom resources, and waiting until they are served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from patience import PATIENCE

from pilothouse.client import Json
from pilothouse.testing import API, Answer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


SPEC: Json = {
    "type": "object",
    "properties": {"size": {"type": "integer", "default": 1}, "color": {"type": "string"}},
}
SCHEMA: Json = {"type": "object", "properties": {"spec": SPEC, "status": {"type": "object"}}}


def version(name: str = "v1", *, storage: bool = True, schema: Json | None = None, **said: Any) -> Json:
    shown = {"openAPIV3Schema": SCHEMA if schema is None else schema}
    return {"name": name, "served": True, "storage": storage, "schema": shown, **said}


def definition(*versions: Json, plural: str = "widgets", kind: str = "Widget", **spec: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def widget(name: str = "a", *, api_version: str = "v1", **fields: Any) -> Json:
    return {"apiVersion": f"example.com/{api_version}", "kind": "Widget", "metadata": {"name": name}, **fields}


async def events(server: API, target: str) -> AsyncGenerator[Json, None]:
    """Of a watch, as they come."""
    response = await server.open("GET", target)
    assert response.status == 200
    async for chunk in response.chunks():
        for line in chunk.splitlines():
            yield orjson.loads(line)


async def until_condition(server: API, name: str, kind: str, status: str = "True") -> Json:
    """The definition as soon as the condition has this status."""
    target = f"{DEFINITIONS}?watch=true&timeoutSeconds=10&fieldSelector=metadata.name%3D{name}"
    async for event in events(server, target):
        obj: Json = event["object"]
        conditions = {each["type"]: each["status"] for each in obj["status"]["conditions"] or ()}
        if conditions.get(kind) == status:
            return obj
    raise AssertionError(f"{name} never had {kind}={status}")


async def eventually(server: API, wanted: int, method: str, target: str, body: Json | None = None) -> Answer:
    """The answer as soon as it has the wanted status: what watches a definition acts a moment after it has changed."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        answer = await server.request(method, target, body)
        if answer.status == wanted:
            return answer
        await asyncio.sleep(0)
    raise AssertionError(f"{method} {target} answers {answer.status}")


async def until_gone(server: API, name: str) -> None:
    """It may be gone before anybody could watch it go."""
    await eventually(server, 404, "GET", f"{DEFINITIONS}/{name}")


async def install(server: API, wanted: Json) -> Json:
    answer = await server.request("POST", DEFINITIONS, wanted)
    assert answer.status == 201, answer.body
    return await until_condition(server, wanted["metadata"]["name"], "Established")
