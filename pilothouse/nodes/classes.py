"""Default classes of a simulated cluster, the counterpart of a cloud provider's classes.

Claims without a class get a volume at once; ingresses of class `simulated` get an address. The controllers of both run
with the simulation.
"""

from __future__ import annotations

from contextlib import suppress

from pilothouse.client.rest.client import Client
from pilothouse.controllers.loadbalancer.ingresses import CLASS
from pilothouse.controllers.volume.persistentvolume.matching import SIMULATED
from pilothouse.machinery.errors import AlreadyExists

_STORAGE = {
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": SIMULATED,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
_INGRESS = {"metadata": {"name": CLASS}, "spec": {"controller": SIMULATED}}


async def install_classes(client: Client) -> None:
    """Create the classes; existing classes stay unchanged."""
    for version, plural, made in (
        ("storage.k8s.io/v1", "storageclasses", _STORAGE),
        ("networking.k8s.io/v1", "ingressclasses", _INGRESS),
    ):
        with suppress(AlreadyExists):
            await client.resource(version, plural).create(made)
