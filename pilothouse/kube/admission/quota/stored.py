"""Resource quotas as the ResourceQuota plugin needs them, over the registry of the resource."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.parsing import parse_all
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.kinds.resource_lists import written
from pilothouse.kube.admission.quota.check import Charge
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of


class StoredQuotas:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry
        self._quotas = CompiledObjects(registry, namespace_of)
        self._of: Sequence[str] = ()
        self._namespaces: frozenset[str] = frozenset()

    async def exist_in(self, namespace: str) -> bool:
        with translated(self._registry.resource.group_resource):
            quotas = await self._quotas.all()
        if quotas is not self._of:
            self._of, self._namespaces = quotas, frozenset(quotas)
        return namespace in self._namespaces

    async def newest(self, namespace: str) -> list[Json]:
        with translated(self._registry.resource.group_resource):
            page = await self._registry.list_newest(namespace)
        return await parse_all(page.objects)

    async def charge(self, charge: Charge) -> bool:
        name = name_of(charge.quota)
        with translated(self._registry.resource.group_resource, name):
            current = await self._registry.newest(namespace_of(charge.quota), name)
            if current is None:
                return True
            if str(current.revision) != resource_version_of(charge.quota):
                return False
            quota = current.parse()
            quota["status"]["used"] = written(charge.used)
            try:
                await self._registry.replace(current, quota)
            except (RevisionConflict, KeyNotFound):
                return False
        return True
