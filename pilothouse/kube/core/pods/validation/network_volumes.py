"""Volumes of network protocols, in-tree storage providers and CSI drivers."""

from __future__ import annotations

import re

from pilothouse.kube.validation.fields import dns_label, non_empty, one_of
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

ISCSI_NAME_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)

_INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_MAX_LUN = 255
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_MAX_TENANT = 64
_MAX_ISCSI_NAME = 64


def validate_nfs(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("server"), path.child("server"))
    yield from non_empty(source.get("path"), path.child("path"))
    if not (source.get("path") or "").startswith("/"):
        yield invalid(path.child("path"), source.get("path") or "", "must be an absolute path")


def validate_iscsi(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("targetPortal"), path.child("targetPortal"))
    if not source.get("iqn"):
        yield required(path.child("iqn"))
    else:
        yield from _validate_initiator(source["iqn"], path.child("iqn"))
    yield from _validate_lun(source.get("lun") or 0, path.child("lun"))
    needs_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if needs_secret and source.get("secretRef") is None:
        yield required(path.child("secretRef"))
    if source.get("initiatorName") is not None:
        yield from _validate_initiator(source["initiatorName"], path.child("initiatorname"))


def is_iscsi_name_too_long(source: Json, volume_name: str) -> bool:
    """Report whether the generated interface name of the initiator would be too long: ISCSI_NAME_TOO_LONG."""
    name = f"{volume_name}:{source.get('targetPortal') or ''}"
    return source.get("initiatorName") is not None and len(name.encode()) > _MAX_ISCSI_NAME


def _validate_initiator(name: str, path: Path) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not pattern.search(name):
        yield invalid(path, name, "must be valid format")


def _validate_lun(lun: int, path: Path) -> Errors:
    if not 0 <= lun <= _MAX_LUN:
        yield invalid(path, lun, inclusive_range_error(0, _MAX_LUN))


def validate_fibre_channel(source: Json, path: Path) -> Errors:
    names, ids = source.get("targetWWNs"), source.get("wwids")
    if not names and not ids:
        yield required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        reason = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(path.child("targetWWNs"), names, reason)
    if names:
        if source.get("lun") is None:
            yield required(path.child("lun"), "lun is required if targetWWNs is specified")
        else:
            yield from _validate_lun(source["lun"], path.child("lun"))


def validate_quobyte(source: Json, path: Path) -> Errors:
    registry = source.get("registry") or ""
    if not registry:
        yield required(path.child("registry"), _REGISTRY)
    elif len((source.get("tenant") or "").encode()) > _MAX_TENANT:
        reason = "must be a UUID and may not exceed a length of 64 characters"
        yield required(path.child("tenant"), reason)
    else:
        for pair in registry.split(","):
            if not is_host_port(pair):
                yield invalid(path.child("registry"), registry, _REGISTRY)
    yield from non_empty(source.get("volume"), path.child("volume"))


def is_host_port(text: str) -> bool:
    """Report whether Go's net.SplitHostPort accepts the text: brackets are for IPv6 hosts only."""
    host, colon, port = text.rpartition(":")
    if not colon or "[" in port or "]" in port:
        return False
    if host.startswith("[") and host.endswith("]"):
        return "[" not in host[1:] and "]" not in host[:-1]
    return not any(char in host for char in "[]:")


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
            reason = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(path.child("options").key(option), option, reason)


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
        yield not_supported(path.child("diskURI"), uri, (_MANAGED_DISK,), plain=True)
    if kind != "Managed" and not uri.startswith("https://"):
        yield not_supported(path.child("diskURI"), uri, (_BLOB_DISK,), plain=True)


def validate_csi_driver_name(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _MAX_DRIVER_NAME:
        yield too_long(path, _MAX_DRIVER_NAME)
    for message in is_dns1123_subdomain(name.lower()):
        yield invalid(path, name, message)
