"""The objects that are written under load."""

from __future__ import annotations

import orjson

CONTAINER = {
    "name": "web",
    "image": "registry.k8s.io/nginx:1.27",
    "ports": [{"containerPort": 8080, "name": "http"}],
    "env": [{"name": "LEVEL", "value": "info"}, {"name": "REGION", "value": "eu"}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
}
"""Of a pod such as a Deployment makes: with a port, a probe, resources, environment and a volume."""
VOLUME = {"name": "config", "configMap": {"name": "web"}}


def config_map(name: str, *, size: int = 1000, generate: bool = False) -> bytes:
    return _object("ConfigMap", name, generate=generate, data={"k": "x" * size})


def pod(name: str, *, generate: bool = False, node: str = "") -> bytes:
    """One such as a Deployment makes."""
    spec = {"containers": [CONTAINER], "volumes": [VOLUME]} | ({"nodeName": node} if node else {})
    return _object("Pod", name, generate=generate, labels={"app": "web"}, spec=spec)


def _object(kind: str, name: str, *, generate: bool, labels: dict[str, str] | None = None, **fields: object) -> bytes:
    metadata: dict[str, object] = {"generateName" if generate else "name": name}
    if labels:
        metadata["labels"] = labels
    return orjson.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields})
