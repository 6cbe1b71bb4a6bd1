"""The definitions as they are now."""

from __future__ import annotations

from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.machinery.objects import Json, name_of


class Definitions(RegistryInformer):
    def of_group(self, group: str) -> list[Json]:
        """By name."""
        return sorted((each for each in self.all() if each["spec"]["group"] == group), key=name_of)
