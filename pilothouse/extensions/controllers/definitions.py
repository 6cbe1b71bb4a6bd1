"""The definitions as they are now."""

from __future__ import annotations

from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json, name_of


class DefinitionInformer(RegistryInformer):
    _by_group: dict[str, dict[str, Json]]  # by name; a group without definitions is not here

    def __init__(self, registry: RegistryStore) -> None:
        super().__init__(registry)
        self._by_group = {}

    def of_group(self, group: str) -> list[Json]:
        """Return the definitions of a group, sorted by name. May be called in another thread."""
        return [definition for _, definition in sorted(self._by_group.get(group, {}).items())]

    def _notify(self, objects: list[Json]) -> None:
        for definition in objects:
            name = name_of(definition)
            group = definition["spec"]["group"]
            current, of_group = self.get(name), self._by_group.setdefault(group, {})
            before = of_group.pop(name, None)
            if current is not None:
                if before is not None and before["spec"] == current["spec"]:
                    # Most changes are of the status. Whoever holds an older form shares the spec with this one.
                    current["spec"] = before["spec"]
                of_group[name] = current
            if not of_group:
                del self._by_group[group]
        super()._notify(objects)
