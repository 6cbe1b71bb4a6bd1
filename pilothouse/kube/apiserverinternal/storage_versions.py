"""StorageVersions: the storage version of a resource, per API server."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.fields import dns_subdomain, non_empty, qualified_name
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain
from pilothouse.machinery.validation.pattern_format import EMPTY_ERROR, regex_error

GROUP = "internal.apiserver.k8s.io"

_STATUS = "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionStatus"
_SHOWN = 3

_LABEL = regex_error(
    "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)

_NOT_AGREED = (
    "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the "
    "supported versions yet"
)


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
    shown = ",".join(f"{text(server, 'apiServerID')}={text(server, 'encodingVersion')}" for server in servers[:_SHOWN])
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


def validate_status(status: Json, path: Path) -> Errors:
    seen: set[str] = set()
    for position, server in enumerate(items(status, "storageVersions")):
        where, name = path.child("storageVersions").index(position), text(server, "apiServerID")
        if name in seen:
            yield duplicate(where.child("apiServerID"), name)
        seen.add(name)
        yield from _validate_server(server, where)
    yield from _validate_common_version(status, path.child("commonEncodingVersion"))
    yield from _validate_conditions(items(status, "conditions"), path)


def _validate_server(server: Json, path: Path) -> Errors:
    yield from dns_subdomain(text(server, "apiServerID"), path.child("apiServerID"))
    encoding, decodable = text(server, "encodingVersion"), server.get("decodableVersions")
    yield from _validate_api_version(encoding, path.child("encodingVersion"))
    for position, version in enumerate(decodable or ()):
        yield from _validate_api_version(version, path.child("decodableVersions").index(position))
    if encoding not in (decodable or ()):
        reason = f"decodableVersions must include encodingVersion {encoding}"
        yield invalid(path.child("decodableVersions"), decodable, reason)
    for position, version in enumerate(items(server, "servedVersions")):
        where = path.child("servedVersions").index(position)
        yield from _validate_api_version(version, where)
        if version not in (decodable or ()):
            known = f"[{' '.join(decodable or ())}]"
            reason = f"individual served version : {version} must be included in decodableVersions : {known}"
            yield invalid(where, version, reason)


def _validate_api_version(version: str, path: Path) -> Errors:
    if problems := _api_version_problems(version):
        yield invalid(path, version, ",".join(problems))


def _api_version_problems(api_version: str) -> list[str]:
    if api_version.count("/") > 1:
        return [
            f"an apiVersion is {_LABEL} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
        ]
    group, slash, version = api_version.rpartition("/")
    of_group = (is_dns1123_subdomain(group) if group else [EMPTY_ERROR]) if slash else []
    of_version = is_dns1035_label(version) if version else [EMPTY_ERROR]
    return [*(f"group part: {item}" for item in of_group), *(f"version part: {item}" for item in of_version)]


def _validate_common_version(status: Json, path: Path) -> Errors:
    versions = {text(server, "encodingVersion") for server in items(status, "storageVersions")}
    actual, reported = versions.pop() if len(versions) == 1 else None, status.get("commonEncodingVersion")
    if actual == reported:
        return
    if actual is None:
        yield invalid(path, reported, _NOT_AGREED)
    elif reported is None:
        yield invalid(path, None, f"the common encoding version is {actual}")
    else:
        yield invalid(path, reported, f"the actual common encoding version is {actual}")


def _validate_conditions(conditions: list[Json], path: Path) -> Errors:
    """Validate conditions. Paths omit the field name, as upstream's paths do."""
    seen: dict[str, int] = {}
    for position, condition in enumerate(conditions):
        kind, where = text(condition, "type"), path.index(position)
        if kind in seen:
            reason = f"the type of the condition is not unique, it also appears in conditions[{seen[kind]}]"
            yield invalid(where.child("type"), kind, reason)
        seen[kind] = position
        yield from qualified_name(kind, where.child("type"))
        yield from qualified_name(text(condition, "status"), where.child("status"))
        for field in ("reason", "message"):
            yield from non_empty(text(condition, field), where.child(field))
