"""The annotations by which a namespace says what pods in it get, and what they may have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata

GetNamespace: TypeAlias = Callable[[str], Awaitable[Json | None]]
"""The namespace of this name; None where there is none."""


async def annotations_of(namespace: str, get: GetNamespace) -> Mapping[str, str]:
    """Raises NotFound."""
    found = await get(namespace)
    if found is None:
        raise NotFound.of(GroupResource("", "namespaces"), namespace)
    return metadata(found).get("annotations") or {}
