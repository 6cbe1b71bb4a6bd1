"""Volumes of single storage providers, in-tree ones and CSI drivers."""

from __future__ import annotations

from pilothouse.kube.validation.fields import dns_label, non_empty, one_of
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

_MAX_PARTITION = 255
_MAX_DRIVER_NAME = 63
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_RESERVED_DOMAINS = (".kubernetes.io", ".k8s.io")


def validate_gce_disk(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("pdName"), path.child("pdName"))
    yield from _validate_partition(source, path)


def validate_aws_disk(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("volumeID"), path.child("volumeID"))
    yield from _validate_partition(source, path)


def _validate_partition(source: Json, path: Path) -> Errors:
    partition = source.get("partition") or 0
    if not 0 <= partition <= _MAX_PARTITION:
        yield invalid(path.child("partition"), partition, inclusive_range_error(1, _MAX_PARTITION))


def validate_flocker(source: Json, path: Path) -> Errors:
    name, uuid = source.get("datasetName"), source.get("datasetUUID")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if name and "/" in name:
        yield invalid(path.child("datasetName"), name, "must not contain '/'")


def validate_cinder(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("volumeID"), path.child("volumeID"))
    yield from _validate_secret_name(source, path)


def validate_storage_os(source: Json, path: Path) -> Errors:
    if not source.get("volumeName"):
        yield required(path.child("volumeName"))
    else:
        yield from dns_label(source["volumeName"], path.child("volumeName"))
    if source.get("volumeNamespace"):
        yield from dns_label(source["volumeNamespace"], path.child("volumeNamespace"))
    yield from _validate_secret_name(source, path)


def _validate_secret_name(source: Json, path: Path) -> Errors:
    secret = source.get("secretRef")
    if secret is not None:
        yield from non_empty(secret.get("name"), path.child("secretRef", "name"))


def validate_flex_volume(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("driver"), path.child("driver"))
    for option in sorted(source.get("options") or {}):
        domain = "." + option.partition("/")[0].lower()
        if domain.endswith(_RESERVED_DOMAINS):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(path.child("options").key(option), option, why)


def validate_azure_disk(source: Json, path: Path) -> Errors:
    kind, uri = source.get("kind"), source.get("diskURI") or ""
    yield from non_empty(source.get("diskName"), path.child("diskName"))
    yield from non_empty(uri, path.child("diskURI"))
    if source.get("cachingMode") is not None:
        yield from one_of(source["cachingMode"], path.child("cachingMode"), _CACHING_MODES)
    if kind is None:
        return
    yield from one_of(kind, path.child("kind"), _DISK_KINDS)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported(path.child("diskURI"), uri, (_MANAGED_DISK,))
    if kind != "Managed" and not uri.startswith("https://"):
        yield not_supported(path.child("diskURI"), uri, (_BLOB_DISK,))


def validate_csi_driver_name(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _MAX_DRIVER_NAME:
        yield too_long(path, _MAX_DRIVER_NAME)
    for message in is_dns1123_subdomain(name.lower()):
        yield invalid(path, name, message)
