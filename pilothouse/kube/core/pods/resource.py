"""Pods as a resource: names, selectable fields and columns."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.core.pods.columns import COLUMNS
from pilothouse.kube.core.pods.strategy import PodStrategy
from pilothouse.kube.served import field_conversion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.fields import Requirement


def _fields(pod: Json) -> Fields:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return metadata_fields(pod) | {
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": status.get("podIP") or "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


PODS = Resource(
    names=Names("pods", kind="Pod", short=["po"], categories=["all"]),
    strategy=PodStrategy(),
    fields=_fields,
    indexed_fields=("spec.nodeName", "metadata.name", "status.podIP", "status.phase"),
    extra_field_labels=frozenset({"status.podIPs"}),
    returns_deleted_object=True,
    columns=COLUMNS,
)

_known_field = field_conversion(PODS)


def convert_field(requirement: Requirement) -> Requirement | None:
    """Refuses labels that pods do not have. Old clients call the node a host."""
    if requirement.field == "spec.host":
        requirement = replace(requirement, field="spec.nodeName")
    return _known_field(requirement)
