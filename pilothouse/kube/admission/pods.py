"""Recognition of pod writes, the nodes of pods, and namespace annotations with defaults and limits for pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata

PODS = GroupResource("", "pods")

GetNamespace: TypeAlias = Callable[[str], Awaitable[Json | None]]
"""Returns the namespace, or None if the name does not exist."""

GetNode: TypeAlias = Callable[[str], Awaitable[Json | None]]


class NodeReader(Handler):
    """Base of plugins that look at the node of a pod."""

    def __init__(self, get_node: GetNode) -> None:
        self._get_node = get_node


def spec_of_written_pod(attributes: Attributes) -> Json | None:
    """Return the spec of the written pod, or None for other resources and for subresources."""
    if attributes.resource.resource != "pods" or attributes.resource.group or attributes.subresource:
        return None
    return None if attributes.obj is None else attributes.obj.setdefault("spec", {})


async def namespace_annotations(namespace: str, get: GetNamespace) -> Mapping[str, str]:
    """Raises NotFound."""
    existing = await get(namespace)
    if existing is None:
        raise NotFound.of(GroupResource("", "namespaces"), namespace)
    return metadata(existing).get("annotations") or {}
