"""Objects referenced by tokens, from the watch caches with a fallback to the store."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.registries import Registries
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json


class TokenGetter(Protocol):
    """Returns None for a missing object."""

    async def service_account(self, namespace: str, name: str) -> Json | None: ...
    async def pod(self, namespace: str, name: str) -> Json | None: ...
    async def secret(self, namespace: str, name: str) -> Json | None: ...
    async def node(self, name: str) -> Json | None: ...


class StoredTokenObjects:
    def __init__(self, registries: Registries) -> None:
        self._registries = registries

    async def service_account(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(SERVICE_ACCOUNTS), namespace, name)

    async def pod(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(PODS), namespace, name)

    async def secret(self, namespace: str, name: str) -> Json | None:
        return await _read(self._registries.open(SECRETS), namespace, name)

    async def node(self, name: str) -> Json | None:
        return await _read(self._registries.open(NODES), "", name)


async def _read(registry: RegistryStore, namespace: str, name: str) -> Json | None:
    try:
        existing = await registry.known_or_newest(namespace, name)
    except BadRequest:
        return None  # invalid name
    return None if existing is None else existing.parse()
