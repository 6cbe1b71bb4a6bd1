"""A conversion webhook between two shapes of a Widget, and the definition that names it.

v1   spec: {host: h, port: 80, replicas: 2}        v2   spec: {address: "h:80", count: 2}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web
from custom_resources import definition, version

from pilothouse.client import Json

_INTEGER = {"type": "integer"}
_STRING = {"type": "string"}
_STATUS = {"type": "object", "properties": {"ready": _INTEGER}}


def _schema(**properties: Json) -> Json:
    spec = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {"spec": spec, "status": _STATUS}}


V1_SCHEMA = _schema(host=_STRING, port=_INTEGER | {"default": 80}, replicas=_INTEGER | {"minimum": 0})
V2_SCHEMA = _schema(address=_STRING, count=_INTEGER | {"maximum": 100}, note=_STRING)


def _subresources(replicas: str) -> Json:
    return {"status": {}, "scale": {"specReplicasPath": replicas, "statusReplicasPath": ".status.ready"}}


def widgets(config: Json, *, stored: str = "v1", reviews: tuple[str, ...] = ("v1",)) -> Json:
    v1 = version(
        "v1",
        storage=stored == "v1",
        schema=V1_SCHEMA,
        subresources=_subresources(".spec.replicas"),
        selectableFields=[{"jsonPath": ".spec.host"}],
    )
    v2 = version(
        "v2",
        storage=stored == "v2",
        schema=V2_SCHEMA,
        subresources=_subresources(".spec.count"),
        selectableFields=[{"jsonPath": ".spec.address"}],
        additionalPrinterColumns=[{"name": "Address", "type": "string", "jsonPath": ".spec.address"}],
    )
    webhook = {"clientConfig": config, "conversionReviewVersions": list(reviews)}
    return definition(v1, v2, conversion={"strategy": "Webhook", "webhook": webhook})


def convert(obj: Json, desired: str) -> Json:
    spec = obj.get("spec") or {}
    made: Json
    if desired.endswith("/v2"):
        made = {"address": f"{spec['host']}:{spec['port']}"} if "host" in spec else {}
        made |= {"count": spec["replicas"]} if "replicas" in spec else {}
    else:
        host, _, port = spec.get("address", "").partition(":")
        made = {"host": host, "port": int(port or 80)} if host else {}
        made |= {"replicas": spec["count"]} if "count" in spec else {}
    return obj | {"apiVersion": desired, "spec": made}


class Converter:
    """Answers reviews. `spoil` may change each answer's response before it goes; `reviews` are those that came."""

    def __init__(self) -> None:
        self.reviews: list[Json] = []
        self.spoil: Callable[[Json], Any] = lambda response: None
        self.down = False

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return web.Response(status=500, text="down")
        review = await request.json()
        self.reviews.append(review)
        asked = review["request"]
        objects = [convert(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
        response = {"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        self.spoil(response)
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})

    @property
    def sizes(self) -> list[int]:
        return [len(review["request"]["objects"]) for review in self.reviews]
