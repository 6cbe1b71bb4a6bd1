"""The volume with a service account's token, the cluster's CA and the namespace, which every container mounts."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.names_generator import generate_name
from pilothouse.machinery.objects import Json

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_PREFIX = "kube-api-access-"
_EXPIRATION_SECONDS = 3607
"""An hour and seven seconds: tokens of this age are known to be the injected ones, and are renewed with patience."""


def mount_token(spec: Json) -> None:
    """Containers that mount something else at the same place are left alone."""
    given = next((volume["name"] for volume in spec.get("volumes") or [] if volume["name"].startswith(_PREFIX)), None)
    name = given or generate_name(_PREFIX)
    mounting = [container for container in _containers(spec) if not _is_taken(container)]
    for container in mounting:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if mounting and given is None:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _source()}]


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _is_taken(container: Json) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _source() -> Json:
    namespace: Any = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _EXPIRATION_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 0o644,
    }
