"""How long decoding takes, in microseconds of processor time: parse alone, and parse with the typed decoding.

python benchmarks/decode.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from pilothouse.machinery.codec.decoder import Codec, decode_object
from pilothouse.machinery.codec.scheme import KUBE
from pilothouse.machinery.names import GroupVersionKind

CONFIG_MAP: Any = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default", "labels": {"app": "web"}},
    "data": {"mode": "production", "level": "info"},
}


def _mount(name: str, path: str) -> Any:
    return {"name": name, "mountPath": path, "readOnly": True}


def _probe(path: str, port: int | str) -> Any:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "initialDelaySeconds": 10,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "failureThreshold": 3,
    }


CONTAINER: Any = {
    "name": "web",
    "image": "registry.example.com/web:1.27.3",
    "command": ["/bin/web"],
    "args": ["--port=8080", "--log-level=info"],
    "ports": [
        {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in (("http", 8080), ("up", 9090))
    ],
    "env": [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
        {"name": "MODE", "value": "production"},
    ],
    "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
    "volumeMounts": [_mount("config", "/etc/web"), _mount("cache", "/var/cache"), _mount("token", "/var/run/secrets")],
    "livenessProbe": _probe("/healthz", 8080),
    "readinessProbe": _probe("/readyz", "http"),
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
    "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
}

OWNER: Any = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web-7d4b9c8f6",
    "uid": "7e3ad8f3-5b7e-4a55-9c0a-0d4a2f0c8f11",
    "controller": True,
    "blockOwnerDeletion": True,
}

TOKEN_SOURCES: Any = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
]

POD: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "web-7d4b9c8f6-",
        "namespace": "default",
        "labels": {"app": "web", "pod-template-hash": "7d4b9c8f6", "tier": "frontend"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
        "ownerReferences": [OWNER],
    },
    "spec": {
        "volumes": [
            {"name": "config", "configMap": {"name": "web", "items": [{"key": "app.yaml", "path": "app.yaml"}]}},
            {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "token", "projected": {"sources": TOKEN_SOURCES, "defaultMode": 420}},
        ],
        "containers": [CONTAINER],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "web",
        "securityContext": {"fsGroup": 2000},
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "enableServiceLinks": True,
    },
}


def best(run: Callable[[], object], *, rounds: int = 12, calls: int = 1000) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            run()
        times.append(time.process_time() - start)
    return min(times) / calls * 1e6


def main() -> None:
    for obj in (CONFIG_MAP, POD):
        data = orjson.dumps(obj)
        gvk = GroupVersionKind("", "v1", obj["kind"])
        parsing = best(partial(orjson.loads, data))
        whole = best(partial(decode_object, data, codec=Codec.JSON, default=gvk, scheme=KUBE))
        print(f"{obj['kind']:<10} {len(data):5} bytes   parse {parsing:5.1f} µs   decode_object {whole:5.1f} µs")


if __name__ == "__main__":
    main()
