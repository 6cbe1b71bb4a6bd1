"""The informer of CustomResourceDefinitions."""

from __future__ import annotations

from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json, name_of


class DefinitionInformer(RegistryInformer):
    _by_group: dict[str, dict[str, Json]]  # group → name → definition; inner dicts are never empty

    def __init__(self, registry: RegistryStore) -> None:
        super().__init__(registry)
        self._by_group = {}

    def of_group(self, group: str) -> list[Json]:
        """Return the definitions of a group, sorted by name. Thread-safe."""
        return [definition for _, definition in sorted(self._by_group.get(group, {}).items())]

    def _notify(self, objects: list[Json]) -> None:
        for definition in objects:
            name = name_of(definition)
            group = definition["spec"]["group"]
            current, of_group = self.get(name), self._by_group.setdefault(group, {})
            before = of_group.pop(name, None)
            if current is not None:
                if before is not None and before["spec"] == current["spec"]:
                    # Most changes affect the status only: share the spec with the older object.
                    current["spec"] = before["spec"]
                of_group[name] = current
            if not of_group:
                del self._by_group[group]
        super()._notify(objects)
