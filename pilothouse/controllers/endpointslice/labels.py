"""Labels of EndpointSlices: lookup labels, and labels propagated from the service."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, part

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
_RESERVED = frozenset({SERVICE_NAME, MANAGED_BY, HEADLESS})
"""Labels that are never propagated from services."""


def manager_of(endpoint_slice: Json) -> str:
    return labels_of(endpoint_slice).get(MANAGED_BY, "")


def service_key(endpoint_slice: Json) -> str:
    """Return the key of the slice's service; empty without the service label."""
    name = labels_of(endpoint_slice).get(SERVICE_NAME)
    return f"{namespace_of(endpoint_slice)}/{name}" if name else ""


def is_headless(service: Json) -> bool:
    return part(service, "spec").get("clusterIP") in (None, "", "None")


def slice_labels(service: Json, controller: str) -> dict[str, str]:
    own = {HEADLESS: ""} if is_headless(service) else {}
    return handed_on(labels_of(service)) | own | {SERVICE_NAME: name_of(service), MANAGED_BY: controller}


def handed_on(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in _RESERVED}
