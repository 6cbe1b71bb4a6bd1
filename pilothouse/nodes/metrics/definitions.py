"""OpenAPI definitions of metrics.k8s.io."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.apiserver.openapi.definitions import META, PACKAGED, V2_REFERENCE, V3_REFERENCE, Definition
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.nodes.metrics.usage import NODE_METRICS, POD_METRICS

PREFIX: Final = "io.k8s.metrics.v1beta1"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"


class MetricsDefinitions:
    """Implements OpenAPIDefinitions."""

    def __init__(self) -> None:
        self._v2 = {name: Definition.of(schema) for name, schema in _schemas(V2_REFERENCE, v3=False).items()}
        self._v3 = {name: Definition.of(schema) for name, schema in _schemas(V3_REFERENCE, v3=True).items()}

    def v2(self, name: str) -> Definition:
        return self._v2.get(name) or PACKAGED.v2(name)

    def v3(self, name: str) -> Definition:
        return self._v3.get(name) or PACKAGED.v3(name)


def _schemas(references: str, *, v3: bool) -> dict[str, Json]:
    def refer(name: str) -> Json:
        reference: Json = {"$ref": references + name}
        return {"allOf": [reference], "default": {}} if v3 else reference

    usage = {
        "description": "The memory usage is the memory working set.",
        "type": "object",
        "additionalProperties": {"$ref": references + _QUANTITY},
    }
    measured = {
        "timestamp": {
            **refer(f"{META}.Time"),
            "description": "The following fields define time interval from which metrics were collected from the "
            "interval [Timestamp-Window, Timestamp].",
        },
        "window": refer(f"{META}.Duration"),
    }
    container = {
        "description": "ContainerMetrics sets resource usage metrics of a container.",
        "type": "object",
        "required": ["name", "usage"],
        "properties": {
            "name": {
                "type": "string",
                "description": "Container name corresponding to the one from pod.spec.containers.",
            },
            "usage": usage,
        },
    }
    containers = {
        "description": "Metrics for all containers are collected within the same time window.",
        "type": "array",
        "items": refer(f"{PREFIX}.ContainerMetrics"),
    }
    return {
        f"{PREFIX}.ContainerMetrics": container,
        **_kind(NODE_METRICS, {**measured, "usage": usage}, "node", refer),
        **_kind(POD_METRICS, {**measured, "containers": containers}, "pod", refer),
    }


def _kind(kind: GroupVersionKind, properties: Json, of: str, refer: Callable[[str], Json]) -> dict[str, Json]:
    type_meta = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}
    own: Json = {
        "description": f"{kind.kind} sets resource usage metrics of a {of}.",
        "type": "object",
        "required": [*properties],
        "properties": {**type_meta, "metadata": refer(f"{META}.ObjectMeta"), **properties},
        "x-kubernetes-group-version-kind": [_identity(kind, kind.kind)],
    }
    listed: Json = {
        "description": f"{kind.kind}List is a list of {kind.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            **type_meta,
            "metadata": refer(f"{META}.ListMeta"),
            "items": {"type": "array", "items": refer(f"{PREFIX}.{kind.kind}")},
        },
        "x-kubernetes-group-version-kind": [_identity(kind, f"{kind.kind}List")],
    }
    return {f"{PREFIX}.{kind.kind}": own, f"{PREFIX}.{kind.kind}List": listed}


def _identity(kind: GroupVersionKind, name: str) -> Json:
    return {"group": kind.group, "kind": name, "version": kind.version}
