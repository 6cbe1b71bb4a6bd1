"""The server's own access to built-in resources, with managed fields."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.install import field_manager
from pilothouse.apiserver.registry.own_access import KUBE_APISERVER, OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.served import served


def tracked_access(registry: RegistryStore, *, manager: str = KUBE_APISERVER, subresource: str = "") -> OwnAccess:
    """Return access to the stored version, or to the subresource of the registry's strategy."""
    resource = served(registry, registry, subresource=subresource)
    version = APIVersion(resource.kind.group_version, [resource])
    return OwnAccess(registry, field_manager(resource, [version]), manager)
