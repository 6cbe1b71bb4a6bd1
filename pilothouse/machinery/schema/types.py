"""Types by kind and by definition, built on first access.

of(GroupVersionKind("apps", "v1", "Deployment")).decode({...})
definition("io.k8s.api.core.v1.PodSpec").fields["containers"]
"""

from __future__ import annotations

from functools import cache

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.schema.nodes import TypeNode
from pilothouse.machinery.schema.object_type import ObjectType
from pilothouse.machinery.schema.tree import node_of
from pilothouse.machinery.wire_facts import message_named, message_of


def of(gvk: GroupVersionKind) -> ObjectType | None:
    """Return the type of a built-in kind, else None. Status and the options kinds exist in every group and version."""
    return _of(gvk.group, gvk.version, gvk.kind)


@bounded_cache(entries=2048, key_bytes=256)
def _of(group: str, version: str, kind: str) -> ObjectType | None:
    gvk = GroupVersionKind(group, version, kind)
    message = message_of(gvk)
    return None if message is None else ObjectType(gvk, node_of(message.package, message.message))


@cache
def definition(name: str) -> TypeNode | None:
    """Return the struct with an OpenAPI name, else None."""
    message = message_named(name)
    try:
        return node_of(message.package, message.message)
    except KeyError:
        return None
