"""StorageVersions: the version in which each server of a cluster stores a resource."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.apiserverinternal.storage_version_status import validate_status
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain

GROUP = "internal.apiserver.k8s.io"

_STATUS = "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionStatus"
_SHOWN = 3


class StorageVersionStrategy(SeparateStatusStrategy):
    namespaced = False
    allow_unconditional_update = False

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        group, dot, resource = name.rpartition(".")
        if not dot:
            return ["name must be in the form of <group>.<resource>"]
        return [
            *(f"the group segment {message}" for message in is_dns1123_subdomain(group)),
            *(f"the resource segment {message}" for message in is_dns1035_label(resource)),
        ]

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from ()


class StorageVersionStatusStrategy(StatusSubresource, StorageVersionStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_status(part(obj, "status"), root("status"))


def _common(obj: Json) -> str:
    common = part(obj, "status").get("commonEncodingVersion")
    return "<unset>" if common is None else common


def _of_servers(obj: Json) -> str:
    servers = items(obj, "status", "storageVersions")
    shown = ",".join(f"{text(each, 'apiServerID')}={text(each, 'encodingVersion')}" for each in servers[:_SHOWN])
    if len(servers) > _SHOWN:
        return f"{shown} + {len(servers) - _SHOWN} more..."
    return shown or "<unset>"


STORAGE_VERSIONS = Resource(
    names=Names("storageversions", kind="StorageVersion"),
    strategy=StorageVersionStrategy(),
    status=StorageVersionStatusStrategy(),
    group=GROUP,
    version="v1alpha1",
    columns=[
        NAME,
        Column("CommonEncodingVersion", _common, documented=(_STATUS, "commonEncodingVersion")),
        Column("StorageVersions", _of_servers, documented=(_STATUS, "storageVersions")),
        AGE,
    ],
)
