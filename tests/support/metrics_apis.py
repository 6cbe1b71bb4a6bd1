"""The three metrics APIs behind real TLS sockets, answering what a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson
from awaiting import until
from tls_backends import Pki, backend

from pilothouse.apiserver import Request, Response
from pilothouse.client import Client, Json
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.times import format_time

GROUPS = {"metrics.k8s.io": "v1beta1", "custom.metrics.k8s.io": "v1beta2", "external.metrics.k8s.io": "v1beta1"}
KINDS = {
    "metrics.k8s.io": "PodMetricsList",
    "custom.metrics.k8s.io": "MetricValueList",
    "external.metrics.k8s.io": "ExternalMetricValueList",
}
_FAILURE = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
_SERVICE = {"name": "metrics", "namespace": "default"}


@dataclass
class MetricsAPIs:
    """`items` by path, below the group and its version."""

    items: dict[str, list[Json]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, request: Request) -> Response:
        parts = request.path.split("/", 4)
        group, rest = parts[2] if len(parts) > 2 else "", parts[4] if len(parts) > 4 else ""
        version = GROUPS.get(group, "")
        if not rest:
            return _answer(_discovery(group, version, whole=len(parts) < 4))
        self.asked.append(f"{request.path}?{request.query_string}")
        if rest not in self.items:
            return _answer({**_FAILURE, "code": 404, "reason": "NotFound", "message": "no such metric"}, 404)
        return _answer({"kind": KINDS[group], "apiVersion": f"{group}/{version}", "items": self.items[rest]})

    def use(self, namespace: str, resource: str = "cpu", **amounts: str) -> None:
        """Say what pods use."""
        usage = [(name.replace("_", "-"), {resource: amount}) for name, amount in amounts.items()]
        self.items[f"namespaces/{namespace}/pods"] = [
            {"metadata": {"name": name}, "containers": [{"name": "c", "usage": used}], "window": "15s", **_measured()}
            for name, used in usage
        ]

    def say(self, path: str, *values: str) -> None:
        """Say a custom or an external metric. Custom ones are of the objects p0, p1 …"""
        self.items[path] = [
            {
                "describedObject": {"kind": "Pod", "name": f"p{number}"},
                "metric": {"name": path.rpartition("/")[2], "selector": None},
                "value": value,
                **_measured(),
            }
            for number, value in enumerate(values)
        ]


def _measured() -> Json:
    return {"timestamp": format_time(datetime.now(UTC)), "windowSeconds": 15}


def _discovery(group: str, version: str, *, whole: bool) -> Json:
    named = {"groupVersion": f"{group}/{version}", "version": version}
    if whole:
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [named], "preferredVersion": named}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": []}


def _answer(document: Json, status: int = 200) -> Response:
    return Response(status, orjson.dumps(document), [(b"content-type", b"application/json")])


@asynccontextmanager
async def metrics_apis(client: Client, folder: Path) -> AsyncIterator[MetricsAPIs]:
    """They are available when the block begins."""
    pki, apis = Pki.make(folder / "pki"), MetricsAPIs()
    async with backend(apis, pki, names=("metrics.default.svc",)) as listening:
        port = listening.port
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        await client.resource("v1", "services", namespace="default").create({"metadata": _SERVICE, "spec": spec})
        services = client.resource("apiregistration.k8s.io/v1", "apiservices")
        for group, version in GROUPS.items():
            named = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100}
            where = {"service": {**_SERVICE, "port": port}, "caBundle": pki.ca_bundle}
            await services.create({"metadata": {"name": f"{version}.{group}"}, "spec": named | where})
        for group, version in GROUPS.items():
            await until(services, f"{version}.{group}", lambda service: is_true(service, "Available"))
        yield apis
