"""The objects that a pod refers to by name: its secrets, config maps and claims.

Where a pod may name a secret or a config map stands in two tables of paths. Only those places count: a node selector or
an attribute of a CSI volume may well be called `secretName`, and names nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pilothouse.machinery.objects import Json, name_of

_Path: TypeAlias = tuple[str, ...]
"""Names of fields, from the spec down; a list on the way stands for each of its items."""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRETS: tuple[_Path, ...] = (
    ("imagePullSecrets", "name"),
    *((containers, "envFrom", "secretRef", "name") for containers in _CONTAINERS),
    *((containers, "env", "valueFrom", "secretKeyRef", "name") for containers in _CONTAINERS),
    ("volumes", "azureFile", "secretName"),
    ("volumes", "cephfs", "secretRef", "name"),
    ("volumes", "cinder", "secretRef", "name"),
    ("volumes", "csi", "nodePublishSecretRef", "name"),
    ("volumes", "flexVolume", "secretRef", "name"),
    ("volumes", "iscsi", "secretRef", "name"),
    ("volumes", "projected", "sources", "secret", "name"),
    ("volumes", "rbd", "secretRef", "name"),
    ("volumes", "scaleIO", "secretRef", "name"),
    ("volumes", "secret", "secretName"),
    ("volumes", "storageos", "secretRef", "name"),
)
_CONFIG_MAPS: tuple[_Path, ...] = (
    *((containers, "envFrom", "configMapRef", "name") for containers in _CONTAINERS),
    *((containers, "env", "valueFrom", "configMapKeyRef", "name") for containers in _CONTAINERS),
    ("volumes", "configMap", "name"),
    ("volumes", "projected", "sources", "configMap", "name"),
)


def secret_names(spec: Json) -> set[str]:
    """Return the names of the secrets that a pod's spec refers to itself, and not by way of a claim."""
    return {name for path in _SECRETS for name in _at(path, spec)}


def config_map_names(spec: Json) -> set[str]:
    return {name for path in _CONFIG_MAPS for name in _at(path, spec)}


def _at(path: _Path, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _at(path, item)
    elif value and path:
        yield from _at(path[1:], value.get(path[0]))
    elif value:
        yield value


def claim_names(pod: Json) -> set[str]:
    """Return the names of the persistent volume claims behind the pod's volumes."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return {name for volume in volumes if (name := claim_name(pod, volume))}


def claim_name(pod: Json, volume: Json) -> str:
    """Return the name of the claim behind a volume of the pod, empty for a volume without one."""
    if volume.get("persistentVolumeClaim") is not None:
        return volume["persistentVolumeClaim"].get("claimName") or ""
    return ephemeral_claim_name(pod, volume) if volume.get("ephemeral") is not None else ""


def ephemeral_claim_name(pod: Json, volume: Json) -> str:
    """Return the name that the claim of an ephemeral volume is given: it is made of the pod's and the volume's."""
    return f"{name_of(pod)}-{volume.get('name') or ''}"


def resource_claim_names(pod: Json) -> set[str]:
    """Return the names of the resource claims that the pod names, or that were made for it by a template."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    made = {each.get("name"): each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    named = {
        claim.get("resourceClaimName") or made.get(claim.get("name")) for claim in spec.get("resourceClaims") or ()
    }
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return {name for name in (*named, extended) if name}
