"""The sources of persistent volumes, in order of validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pilothouse.kube.core.pods.validation import network_volumes
from pilothouse.kube.core.pods.validation.volumes import (
    NO_VOLUME_TYPE,
    TOO_MANY_VOLUME_TYPES,
    required_fields,
    validate_host_path,
)
from pilothouse.kube.validation.fields import dns_label, dns_subdomain, follow, no_backsteps, non_empty
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import name_is_dns_label

Validate: TypeAlias = Callable[[Json, Path], Errors]

_BAD_FORMAT = "must be valid format"
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


@dataclass(frozen=True, slots=True)
class PersistentVolumeSourceRule:
    """`shown_as` and `refused_as`: upstream's spelling in errors, if different from the name of the field."""

    validate: Validate
    shown_as: str = ""
    refused_as: str = ""
    beside_others: bool = False
    """Upstream accepts this source next to another source."""


def _glusterfs(source: Json, path: Path) -> Errors:
    yield from required_fields("endpoints", "path")(source, path)
    namespace, at = source.get("endpointsNamespace"), path.child("endpointsNamespace")
    if namespace == "":
        yield invalid(at, namespace, "if the endpointnamespace is set, it must be a valid namespace name")
    elif namespace is not None:
        yield from follow(name_is_dns_label, namespace, at)


def _iscsi(source: Json, path: Path) -> Errors:
    """Validate as in pods, with shorter messages. The name of the secret is required, and validated before the
    initiator."""
    initiator = str(path.child("initiatorname"))
    errors = [
        (replace(error, detail=_BAD_FORMAT) if error.detail.startswith(_BAD_FORMAT) else error)
        for error in network_volumes.validate_iscsi(source, path)
    ]
    yield from (error for error in errors if error.field != initiator)
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        yield required(path.child("secretRef", "name"))
    yield from (error for error in errors if error.field == initiator)


def _cinder(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("volumeID"), path.child("volumeID"))
    secret = source.get("secretRef")
    if secret is not None:
        for name in ("name", "namespace"):
            yield from non_empty(secret.get(name), path.child("secretRef", name))


def _storage_os(source: Json, path: Path) -> Errors:
    yield from network_volumes.validate_storage_os(source, path)
    secret = source.get("secretRef")
    if secret is not None:
        yield from non_empty(secret.get("namespace"), path.child("secretRef", "namespace"))


def _azure_file(source: Json, path: Path) -> Errors:
    yield from required_fields("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        yield required(path.child("secretNamespace"))


def _local(source: Json, path: Path) -> Errors:
    if not source.get("path"):
        yield required(path.child("path"))
    else:
        yield from no_backsteps(source["path"], path.child("path"))


def _csi(source: Json, path: Path) -> Errors:
    yield from network_volumes.validate_csi_driver_name(source.get("driver") or "", path.child("driver"))
    yield from non_empty(source.get("volumeHandle"), path.child("volumeHandle"))
    for name in _CSI_SECRETS:
        if source.get(name) is not None:
            secret = source[name]
            secret_path = path.child(name)
            for field, rule in (("name", dns_subdomain), ("namespace", dns_label)):
                if not secret.get(field):
                    yield required(secret_path.child(field))
                else:
                    yield from rule(secret[field], secret_path.child(field))


SOURCES: dict[str, PersistentVolumeSourceRule] = {
    "hostPath": PersistentVolumeSourceRule(validate_host_path),
    "gcePersistentDisk": PersistentVolumeSourceRule(network_volumes.validate_gce_disk, shown_as="persistentDisk"),
    "awsElasticBlockStore": PersistentVolumeSourceRule(network_volumes.validate_aws_disk),
    "glusterfs": PersistentVolumeSourceRule(_glusterfs),
    "flocker": PersistentVolumeSourceRule(network_volumes.validate_flocker),
    "nfs": PersistentVolumeSourceRule(network_volumes.validate_nfs),
    "rbd": PersistentVolumeSourceRule(required_fields("monitors", "image")),
    "quobyte": PersistentVolumeSourceRule(network_volumes.validate_quobyte),
    "cephfs": PersistentVolumeSourceRule(required_fields("monitors"), refused_as="cephFS"),
    "iscsi": PersistentVolumeSourceRule(_iscsi),
    "cinder": PersistentVolumeSourceRule(_cinder),
    "fc": PersistentVolumeSourceRule(network_volumes.validate_fibre_channel),
    "flexVolume": PersistentVolumeSourceRule(network_volumes.validate_flex_volume, beside_others=True),
    "azureFile": PersistentVolumeSourceRule(_azure_file),
    "vsphereVolume": PersistentVolumeSourceRule(required_fields("volumePath")),
    "photonPersistentDisk": PersistentVolumeSourceRule(required_fields("pdID")),
    "portworxVolume": PersistentVolumeSourceRule(required_fields("volumeID")),
    "azureDisk": PersistentVolumeSourceRule(network_volumes.validate_azure_disk),
    "scaleIO": PersistentVolumeSourceRule(required_fields("gateway", "system", "volumeName")),
    "local": PersistentVolumeSourceRule(_local),
    "storageos": PersistentVolumeSourceRule(_storage_os),
    "csi": PersistentVolumeSourceRule(_csi),
}


def validate_sources(spec: Json, volume_name: str, path: Path) -> Errors:
    """Require exactly one source, and validate the source."""
    count = 0
    for name, rule in SOURCES.items():
        source = spec.get(name)
        if source is None:
            continue
        if count and not rule.beside_others:
            yield forbidden(path.child(rule.refused_as or name), TOO_MANY_VOLUME_TYPES)
            continue
        count += 1
        yield from rule.validate(source, path.child(rule.shown_as or name))
        if name == "local" and spec.get("nodeAffinity") is None:
            yield required(path.child("nodeAffinity"), "Local volume requires node affinity")
        if name == "iscsi" and network_volumes.is_iscsi_name_too_long(spec["iscsi"], volume_name):
            portal = spec["iscsi"].get("targetPortal") or ""
            yield invalid(path.child("iscsi", "targetportal"), portal, network_volumes.ISCSI_NAME_TOO_LONG)
    if not count:
        yield required(path, NO_VOLUME_TYPE)


def source_of(spec: Json) -> Json:
    return {name: spec[name] for name in SOURCES if spec.get(name) is not None}
