"""VolumeAttributesClasses."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.storage.storageclasses import GROUP, validate_driver, validate_parameters
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors, forbidden, root
from pilothouse.machinery.objects import Json, part, text


class VolumeAttributesClassStrategy(KubeStrategy):
    namespaced = False

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_driver(text(obj, "driverName"), root("driverName"))
        yield from validate_parameters(part(obj, "parameters"), root("parameters"), may_be_empty=False)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        for field in ("driverName", "parameters"):
            if obj.get(field) != old.get(field):
                yield forbidden(root(field), f"updates to {field} are forbidden.")
        yield from self.validate(obj)


VOLUME_ATTRIBUTES_CLASSES = Resource(
    names=Names("volumeattributesclasses", kind="VolumeAttributesClass", short=["vac"]),
    strategy=VolumeAttributesClassStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[
        NAME,
        Column(
            "DriverName",
            lambda obj: text(obj, "driverName"),
            documented=("io.k8s.api.storage.v1.VolumeAttributesClass", "driverName"),
        ),
        AGE,
    ],
)
