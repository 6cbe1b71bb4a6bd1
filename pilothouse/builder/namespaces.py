"""The namespaces of the cluster: nothing is created in one that is missing or on its way out."""

from __future__ import annotations

from pilothouse.client.rest.client import Client
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.errors import NotFound

_KNOWN_FOR = 5.0
"""Seconds for which a namespace is believed to live. One that is going is asked about each time."""
_MOST, _MOST_BYTES = 4096, 1 << 20


class NamespacePhases:
    """A function from a namespace's name to its status.phase; None where there is no such namespace."""

    def __init__(self, client: Client) -> None:
        self._namespaces = client.resource("v1", "namespaces")
        self._active: BoundedCache[str, str] = BoundedCache(entries=_MOST, total_bytes=_MOST_BYTES)

    async def __call__(self, name: str) -> str | None:
        known = self._active.get(name)
        if known is not None:
            return known
        try:
            found = await self._namespaces.get(name)
        except NotFound:
            return None
        phase = str((found.get("status") or {}).get("phase") or "Active")
        if phase == "Active":
            self._active.put(name, phase, size=len(name), ttl=_KNOWN_FOR)
        return phase
