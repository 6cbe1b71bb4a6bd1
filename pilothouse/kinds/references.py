"""Objects that a pod references by name: Secrets, ConfigMaps, PersistentVolumeClaims and ResourceClaims.

Two tables list the paths where a pod may name a Secret or a ConfigMap. Other fields do not count: a node selector or
an attribute of a CSI volume may be called `secretName` without naming a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pilothouse.machinery.objects import Json, name_of

_Path: TypeAlias = tuple[str, ...]
"""Field names from the spec down; a list on the way stands for each of its items."""

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
    """Return the Secrets that a pod spec names itself, not through a claim."""
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
    """Return the PersistentVolumeClaims behind the pod's volumes."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return {name for volume in volumes if (name := claim_name(pod, volume))}


def claim_name(pod: Json, volume: Json) -> str:
    """Return the PersistentVolumeClaim behind a volume of the pod; empty if the volume has none."""
    if volume.get("persistentVolumeClaim") is not None:
        return volume["persistentVolumeClaim"].get("claimName") or ""
    return ephemeral_claim_name(pod, volume) if volume.get("ephemeral") is not None else ""


def ephemeral_claim_name(pod: Json, volume: Json) -> str:
    """Return the name of the claim of an ephemeral volume: <pod>-<volume>."""
    return f"{name_of(pod)}-{volume.get('name') or ''}"


def resource_claim_statuses(pod: Json) -> dict[str, str | None]:
    """Return name in the pod -> ResourceClaim created for it from a template; None if the pod needs no claim."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {status["name"]: status.get("resourceClaimName") for status in statuses}


def resource_claim_names(pod: Json) -> list[str]:
    """Return the ResourceClaims that the pod names or that were created for it, in the order of the pod."""
    spec, status, created = pod.get("spec") or {}, pod.get("status") or {}, resource_claim_statuses(pod)
    names = [claim.get("resourceClaimName") or created.get(claim["name"]) for claim in spec.get("resourceClaims") or ()]
    names.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    return [name for name in names if name]
