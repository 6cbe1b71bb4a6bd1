"""CSIStorageCapacities: how much room a driver has in a part of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS
from pilothouse.kube.storage.storageclasses import GROUP
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import dns_subdomain, nonnegative_quantity
from pilothouse.kube.validation.selectors import validate_selector_unchanged, warnings_for_selector
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.objects import Json, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE
from pilothouse.machinery.validation.labels import STRICT_RULES, LabelSelectorRules, validate_label_selector

_TOPOLOGY = root("nodeTopology")


class CSIStorageCapacityStrategy(KubeStrategy):
    allow_unconditional_update = False
    repeats_warnings_on_update = True

    def validate(self, obj: Json) -> Errors:
        return self._validate(obj, STRICT_RULES)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        invalid_before = any(validate_label_selector(old.get("nodeTopology"), _TOPOLOGY))
        yield from self._validate(obj, LabelSelectorRules(allow_invalid_values=invalid_before))
        yield from self.validate_metadata_update(obj, old)
        yield from validate_selector_unchanged(obj.get("nodeTopology"), old.get("nodeTopology"), _TOPOLOGY)
        if (name := text(obj, "storageClassName")) != text(old, "storageClassName"):
            yield invalid(root("storageClassName"), name, FIELD_IMMUTABLE)

    def _validate(self, obj: Json, rules: LabelSelectorRules) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_label_selector(obj.get("nodeTopology"), _TOPOLOGY, rules)
        yield from dns_subdomain(text(obj, "storageClassName"), root("storageClassName"))
        if obj.get("capacity") is not None:
            yield from nonnegative_quantity(parse_quantity(obj["capacity"]), root("capacity"))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return warnings_for_selector(obj.get("nodeTopology"), _TOPOLOGY)


CSI_STORAGE_CAPACITIES = Resource(
    names=Names("csistoragecapacities", kind="CSIStorageCapacity"),
    strategy=CSIStorageCapacityStrategy(),
    group=GROUP,
    columns=DEFAULT_COLUMNS,
)
