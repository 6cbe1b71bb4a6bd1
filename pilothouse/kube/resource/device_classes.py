"""DeviceClasses: named selectors and configuration of devices."""

from __future__ import annotations

from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME
from pilothouse.kube.resource.gated_fields import CLASS_SPEC_FIELDS
from pilothouse.kube.resource.names import validate_slice
from pilothouse.kube.resource.requests import MAX_CONFIGURATIONS, validate_configuration, validate_selectors
from pilothouse.kube.strategy import KubeStrategy, drop_disabled
from pilothouse.kube.validation.resource_names import is_extended
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.objects import Json, items, metadata, part
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.names import name_is_long_name

GROUP = "resource.k8s.io"


class DeviceClassStrategy(KubeStrategy):
    namespaced = False
    validates_generate_name = False
    name_rule = staticmethod(name_is_long_name)

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1
        drop_disabled(part(obj, "spec"), None, CLASS_SPEC_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        drop_disabled(part(obj, "spec"), part(old, "spec"), CLASS_SPEC_FIELDS)
        if not semantically_equal(obj.get("spec"), old.get("spec")):
            begin_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(part(obj, "spec"), {})

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(part(obj, "spec"), part(old, "spec"))


def _validate_spec(spec: Json, old: Json) -> Errors:
    path = root("spec")
    yield from validate_selectors(items(spec, "selectors"), path.child("selectors"))
    stored = bool(items(old, "config")) and semantically_equal(spec.get("config"), old.get("config"))
    yield from validate_slice(
        items(spec, "config"),
        MAX_CONFIGURATIONS,
        lambda config, where: validate_configuration(config, where, stored=stored),
        path.child("config"),
    )
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid(path.child("extendedResourceName"), name, "must be a valid extended resource name")


DEVICE_CLASSES = Resource(
    names=Names("deviceclasses", kind="DeviceClass"),
    strategy=DeviceClassStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[NAME, AGE],
)
