"""Recognition of pod writes."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

PODS = GroupResource("", "pods")


def spec_of_written_pod(attributes: Attributes) -> Json | None:
    """Return the spec of the written pod, or None for other resources and for subresources."""
    if attributes.resource.resource != "pods" or attributes.resource.group or attributes.subresource:
        return None
    return None if attributes.obj is None else attributes.obj.setdefault("spec", {})
