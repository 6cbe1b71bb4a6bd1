"""Construction of new slices."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of

_MAX_NAME = 253


def new_slice(owner: Json, kind: str, *, address_type: str, ports: list[Json], labels: dict[str, str]) -> Json:
    """Return a slice without endpoints, with a generateName, controlled by the owner."""
    reference = {
        "apiVersion": "v1",
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    name = name_of(owner)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": (f"{name}-" if len(name) < _MAX_NAME else name),
            "namespace": namespace_of(owner),
            "labels": labels,
            "ownerReferences": [reference],
        },
        "addressType": address_type,
        "ports": ports,
        "endpoints": [],
    }
