"""StorageVersionMigrations: requests to rewrite all objects of a resource in the current storage version."""

from __future__ import annotations

import re
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.internal_structs import ANY, condition, slice_of, struct
from pilothouse.machinery.field import Errors, invalid, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain

GROUP = "storagemigration.k8s.io"
RUNNING, SUCCEEDED, FAILED = STATES = ("Running", "Succeeded", "Failed")

_WELL_FORMED = re.compile(r"[1-9][0-9]*", re.ASCII)


class StorageVersionMigrationStrategy(SeparateStatusStrategy):
    namespaced = False
    allow_unconditional_update = False

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        resource = part(obj, "spec", "resource")
        path = root("spec", "resource")
        name, group = text(resource, "resource"), text(resource, "group")
        if not name:
            yield required(path.child("resource"), "resource is required to be set")
        elif problems := is_dns1035_label(name):
            yield invalid(path.child("resource"), name, ",".join(problems))
        if group and (problems := is_dns1123_subdomain(group)):
            yield invalid(path.child("group"), group, ",".join(problems))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        if not semantically_equal(obj["spec"], old["spec"]):
            yield invalid(root("spec"), struct(Resource=ANY)(obj["spec"]), FIELD_IMMUTABLE)


class StorageVersionMigrationStatusStrategy(StatusSubresource, StorageVersionMigrationStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        version, before = text(obj, "status", "resourceVersion"), text(old, "status", "resourceVersion")
        path = root("status")
        if version and not _WELL_FORMED.fullmatch(version):
            reason = f"resource version is not well formed: {version}"
            yield invalid(path.child("resourceVersion"), version, reason)
        yield from validate_conditions(part(obj, "status").get("conditions"), path.child("conditions"))
        if before and version != before:
            yield invalid(path.child("resourceVersion"), version, FIELD_IMMUTABLE)
        conditions_path = path.child("conditions")
        conditions = slice_of(condition)(part(obj, "status").get("conditions"))
        if _is(obj, SUCCEEDED) and _is(obj, FAILED):
            yield invalid(
                conditions_path, conditions, "Both success and failed conditions cannot be true at the same time"
            )
        for kind, name in ((SUCCEEDED, "Success"), (FAILED, "Failed")):
            if _is(old, kind) and not _is(obj, kind):
                yield invalid(conditions_path, conditions, f"{name} condition cannot be set to false once it is true")


def _is(obj: Json, kind: str) -> bool:
    first = next((item for item in items(obj, "status", "conditions") if text(item, "type") == kind), None)
    return first is not None and text(first, "status") == "True"


def _resource(obj: Json) -> str:
    name, group = text(obj, "spec", "resource", "resource"), text(obj, "spec", "resource", "group")
    return f"{name}.{group}" if group else name


def _state(obj: Json) -> str:
    conditions = items(obj, "status", "conditions")
    true = [text(item, "type") for item in conditions if text(item, "status") == "True"]
    return next((kind for kind in reversed(true) if kind in STATES), "Unknown")


STORAGE_VERSION_MIGRATIONS = Resource(
    names=Names("storageversionmigrations", kind="StorageVersionMigration"),
    strategy=StorageVersionMigrationStrategy(),
    status=StorageVersionMigrationStatusStrategy(),
    group=GROUP,
    version="v1beta1",
    columns=[
        replace(NAME, format=""),
        Column("Resource", _resource, description="GroupResource to migrate"),
        Column("Status", _state, description="Status of the migration"),
    ],
)
