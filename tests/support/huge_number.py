"""A huge number in a spec, and playing it against a server.

A row creates its objects, waits until `acted` holds, sends `then`, and deletes the objects. Work that the server may do
for ever, such as creating twenty million pods, ends with the row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = dict[str, Any]

INT32, INT64 = 2**31 - 1, 2**63 - 1
REPLICAS = 20_000_000
EXPONENT = "1e2147483647"
ZEROS = "0" * 5000
NAMESPACE = "huge-numbers"

_JSON, _MERGE = "application/json", "application/merge-patch+json"
HERE = f"/namespaces/{NAMESPACE}/"
APPS, BATCH, CORE = f"/apis/apps/v1{HERE}", f"/apis/batch/v1{HERE}", f"/api/v1{HERE}"
PODS, QUOTAS = f"{CORE}pods", f"{CORE}resourcequotas"
_PATIENCE = 120.0
_GONE = "?gracePeriodSeconds=0&propagationPolicy=Background"
_CREATED = (200, 201)


class Server(Protocol):
    """The part of a victim that a row needs."""

    @property
    def admin_token(self) -> str: ...

    def call(self, method: str, path: str, body: bytes = b"", *, media_type: str = _JSON, token: str) -> int: ...

    def read(self, path: str) -> Json: ...


Acted: TypeAlias = Callable[[Server], bool]
"""Whether the server has acted on the number."""


@dataclass(frozen=True)
class HugeNumber:
    name: str
    objects: Sequence[tuple[str, Json]]
    """Collections and the objects to create in them."""
    acted: Acted = lambda server: True
    then: Sequence[tuple[str, str, Json]] = field(default_factory=list)
    """Requests to send afterwards: method, path and body."""
    pods: str = "4"
    """The quota of pods: real pods take real memory, so most rows get few."""
    answers: tuple[int, ...] = _CREATED
    """Expected statuses of the creations: huge numbers are accepted, or refused as upstream refuses them."""

    def play(self, server: Server) -> None:
        try:
            self.create(server)
            wait_until(lambda: self.acted(server), f"{self.name}: the server has not acted")
            for method, path, body in self.then:
                status = _call(server, method, path, body)
                assert status < 500, f"{self.name}: {status} for {method} {path}"
        finally:
            self.delete(server)

    def create(self, server: Server) -> None:
        _call(server, "POST", "/api/v1/namespaces", an_object(NAMESPACE))
        _call(server, "POST", QUOTAS, an_object("pods", {"hard": {"pods": self.pods}}))
        _call(server, "PATCH", f"{QUOTAS}/pods", {"spec": {"hard": {"pods": self.pods}}})
        for collection, body in self.objects:
            status = _call(server, "POST", collection, body)
            assert status in self.answers, f"{self.name}: {status} for {collection}"

    def delete(self, server: Server) -> None:
        for collection, body in reversed(self.objects):
            _call(server, "DELETE", f"{collection}/{body['metadata']['name']}{_GONE}")
        wait_until(lambda: without_pods(server), f"{self.name}: pods are left")
        _call(server, "DELETE", f"{CORE}events")


def _call(server: Server, method: str, path: str, body: Json | None = None) -> int:
    media_type = _MERGE if method == "PATCH" else _JSON
    data = b"" if body is None else json.dumps(body).encode()
    return server.call(method, path, data, media_type=media_type, token=server.admin_token)


def wait_until(condition: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, why
        time.sleep(0.02)


def without_pods(server: Server) -> bool:
    """Delete the pods, and return whether there are none."""
    _call(server, "DELETE", PODS + _GONE)
    return not server.read(f"{PODS}?limit=1").get("items")


def has_status(path: str, *fields: str) -> Acted:
    """Hold when the object's status has all of the fields."""
    return lambda server: set(fields) <= (server.read(path).get("status") or {}).keys()


def has_pods(count: int) -> Acted:
    """Hold when there are so many pods."""
    return lambda server: len(server.read(f"{PODS}?limit={count}").get("items") or ()) >= count


def an_object(name: str, spec: Json | None = None, **fields: Any) -> Json:
    return {"metadata": {"name": name}, **({} if spec is None else {"spec": spec}), **fields}


def pod_spec(**fields: Any) -> Json:
    container = {"name": "c", "image": "i", **fields.pop("container", {})}
    return {"containers": [container], "terminationGracePeriodSeconds": 0, **fields}


def workload(name: str, **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec.pop("pod", pod_spec())}
    return an_object(name, {"selector": {"matchLabels": labels}, "template": template, **spec})


def a_job(name: str, **spec: Any) -> Json:
    pod = pod_spec(restartPolicy="Never", container={"command": ["sleep", "3600"]})
    return an_object(name, {"template": {"spec": pod}, **spec})
