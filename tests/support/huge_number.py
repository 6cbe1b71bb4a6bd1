"""A huge number in a spec, and playing it against a server.

A row creates its objects, waits until `acted` holds, sends `then`, and deletes the objects. Work that the server may do
for ever, such as creating twenty million pods, ends with the row.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = dict[str, Any]

INT32, INT64 = 2**31 - 1, 2**63 - 1
REPLICAS = 20_000_000
EXPONENT = "1e2147483647"
ZEROS = "0" * 5000
NAMESPACE = "huge-numbers"

HERE = f"/namespaces/{NAMESPACE}/"
APPS, BATCH, CORE = f"/apis/apps/v1{HERE}", f"/apis/batch/v1{HERE}", f"/api/v1{HERE}"
PODS, QUOTAS = f"{CORE}pods", f"{CORE}resourcequotas"
_PATIENCE = 120.0
_GONE = "?gracePeriodSeconds=0&propagationPolicy=Background"
_CREATED = (200, 201)


class Server(Protocol):
    """The part of a victim that a row needs."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def admin_token(self) -> str: ...

    def tls(self, *protocols: str) -> ssl.SSLContext: ...


class Admin:
    """Requests of a user who may do everything, over one connection."""

    def __init__(self, server: Server) -> None:
        tls = server.tls("http/1.1")
        self._connection = http.client.HTTPSConnection(server.host, server.port, context=tls, timeout=_PATIENCE)
        self._headers = {"Authorization": f"Bearer {server.admin_token}", "Accept": "application/json"}

    def call(self, method: str, path: str, body: Json | None = None) -> int:
        """Return the status of the answer."""
        return self._ask(method, path, body)[0]

    def read(self, path: str) -> Json:
        """Return the object or list at the path; a Status where there is none."""
        found: Json = json.loads(self._ask("GET", path)[1])
        return found

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, bytes]:
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = b"" if body is None or method == "GET" else json.dumps(body).encode()
        self._connection.request(method, path, data, {**self._headers, "Content-Type": media_type})
        answer = self._connection.getresponse()
        return answer.status, answer.read()


Call: TypeAlias = tuple[str, str, Json]
"""Method, path and body of a request."""
Acted: TypeAlias = Callable[[Admin], bool]
"""Whether the server has acted on the number."""


@dataclass(frozen=True)
class HugeNumber:
    name: str
    objects: Sequence[tuple[str, Json]]
    """Collections and the objects to create in them."""
    acted: Acted = lambda admin: True
    then: Sequence[Call] = field(default_factory=list)
    """Requests to send afterwards."""
    pods: str = "4"
    """The quota of pods: real pods take real memory, so most rows get few."""
    answers: tuple[int, ...] = _CREATED
    """Expected statuses of the creations: huge numbers are accepted, or refused as upstream refuses them."""

    def play(self, server: Server) -> None:
        with closing(Admin(server)) as admin:
            try:
                self.create(admin)
                wait_until(lambda: self.acted(admin), f"{self.name}: the server has not acted")
                for method, path, body in self.then:
                    status = admin.call(method, path, body)
                    assert status < 500, f"{self.name}: {status} for {method} {path}"
            finally:
                clean_up(admin, [self])

    def create(self, admin: Admin) -> None:
        admin.call("POST", "/api/v1/namespaces", an_object(NAMESPACE))
        admin.call("POST", QUOTAS, an_object("pods", {"hard": {"pods": self.pods}}))
        admin.call("PATCH", f"{QUOTAS}/pods", {"spec": {"hard": {"pods": self.pods}}})
        for collection, body in self.objects:
            wait_until(partial(_is_served, admin, collection), f"{collection} is not served")
            status = admin.call("POST", collection, body)
            assert status in self.answers, f"{self.name}: {status} for {collection}"


def clean_up(admin: Admin, rows: Sequence[HugeNumber]) -> None:
    """Delete the objects of the rows; return when no pod is left."""
    for collection, body in (each for row in rows for each in reversed(row.objects)):
        admin.call("DELETE", f"{collection}/{body['metadata']['name']}{_GONE}")
    wait_until(lambda: without_pods(admin), f"{rows[0].name}: pods are left")
    admin.call("DELETE", f"{CORE}events")


def _is_served(admin: Admin, collection: str) -> bool:
    return admin.call("GET", f"{collection}?limit=1") != 404


def wait_until(condition: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, why
        time.sleep(0.02)


def without_pods(admin: Admin) -> bool:
    """Delete the pods, and return whether there are none."""
    admin.call("DELETE", PODS + _GONE)
    return not admin.read(f"{PODS}?limit=1").get("items")


def has_status(path: str, *fields: str) -> Acted:
    """Hold when the object's status has all of the fields."""
    return lambda admin: set(fields) <= (admin.read(path).get("status") or {}).keys()


def has_pods(count: int) -> Acted:
    """Hold when there are so many pods."""
    return lambda admin: len(admin.read(f"{PODS}?limit={count}").get("items") or ()) >= count


def gets(*paths: str) -> list[Call]:
    return [("GET", path, {}) for path in paths]


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
