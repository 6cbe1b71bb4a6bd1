"""Namespace annotations with defaults and limits for pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata

GetNamespace: TypeAlias = Callable[[str], Awaitable[Json | None]]
"""Returns the namespace, or None if the name does not exist."""


async def annotations_of(namespace: str, get: GetNamespace) -> Mapping[str, str]:
    """Raises NotFound."""
    existing = await get(namespace)
    if existing is None:
        raise NotFound.of(GroupResource("", "namespaces"), namespace)
    return metadata(existing).get("annotations") or {}
