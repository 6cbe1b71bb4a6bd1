"""The sources of volumes, in the order in which they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pilothouse.kube.core.pods.validation import network_volumes, provider_volumes
from pilothouse.kube.core.pods.validation.file_volumes import (
    validate_config_map,
    validate_downward_api,
    validate_secret,
)
from pilothouse.kube.core.pods.validation.network_volumes import ISCSI_NAME_TOO_LONG, is_iscsi_name_too_long
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.projected_volumes import validate_projected
from pilothouse.kube.validation.fields import follow, local_descending_path, no_backsteps, non_empty, required_one_of
from pilothouse.kube.validation.volume_claims import validate_claim_template
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


@dataclass(frozen=True, slots=True)
class VolumeContext:
    """The volume that a source belongs to. `path` is the volume's."""

    path: Path
    volume_name: str
    pod_name: str
    options: PodValidationOptions


Validate: TypeAlias = Callable[[Json, Path, VolumeContext], Errors]


@dataclass(frozen=True, slots=True)
class VolumeSourceRule:
    """`shown_as` and `refused_as` are upstream's spellings in errors, where they are not the field's name."""

    validate: Validate
    shown_as: str = ""
    refused_as: str = ""
    always: Validate | None = None
    """Checked even when the volume has another source already."""


def _simple(validate: Callable[[Json, Path], Errors], shown_as: str = "", refused_as: str = "") -> VolumeSourceRule:
    return VolumeSourceRule(lambda source, path, _: validate(source, path), shown_as, refused_as)


def _required(*fields: str) -> VolumeSourceRule:
    def validate(source: Json, path: Path) -> Errors:
        for name in fields:
            yield from non_empty(source.get(name), path.child(name))

    return _simple(validate)


def validate_host_path(source: Json, path: Path) -> Errors:
    if not source.get("path"):
        yield required(path.child("path"))
        return
    yield from no_backsteps(source["path"], path.child("path"))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield not_supported(path.child("type"), kind, _HOST_PATH_TYPES)


def _validate_git_repo(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("repository"), path.child("repository"))
    yield from local_descending_path(source.get("directory") or "", path.child("directory"))


def _validate_iscsi_name(source: Json, path: Path, context: VolumeContext) -> Errors:
    if is_iscsi_name_too_long(source, context.volume_name):
        yield invalid(context.path.child("name"), context.volume_name, ISCSI_NAME_TOO_LONG)


def _validate_ephemeral(source: Json, path: Path, context: VolumeContext) -> Errors:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required(path.child("volumeClaimTemplate"))
    else:
        yield from validate_claim_template(template, path.child("volumeClaimTemplate"))
    if context.pod_name and context.volume_name:
        claim = f"{context.pod_name}-{context.volume_name}"
        for message in name_is_dns_subdomain(claim):
            why = f"PVC name {quote(claim)}: {message}"
            yield invalid(context.path.child("name"), context.volume_name, why)


def _validate_image(source: Json, path: Path, context: VolumeContext) -> Errors:
    if context.options.resource_is_pod:
        yield from non_empty(source.get("reference"), path.child("reference"))
    yield from required_one_of(source.get("pullPolicy") or "", path.child("pullPolicy"), PULL_POLICIES)


def _validate_csi(source: Json, path: Path) -> Errors:
    yield from provider_volumes.validate_csi_driver_name(source.get("driver") or "", path.child("driver"))
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return
    if not secret.get("name"):
        yield required(path.child("nodePublishSecretRef", "name"))
    else:
        yield from follow(name_is_dns_subdomain, secret["name"], path.child("name"))


SOURCES: dict[str, VolumeSourceRule] = {
    "hostPath": _simple(validate_host_path),
    "gitRepo": _simple(_validate_git_repo),
    "gcePersistentDisk": _simple(provider_volumes.validate_gce_disk, shown_as="persistentDisk"),
    "awsElasticBlockStore": _simple(provider_volumes.validate_aws_disk),
    "secret": _simple(validate_secret),
    "nfs": _simple(network_volumes.validate_nfs),
    "iscsi": VolumeSourceRule(
        lambda source, path, _: network_volumes.validate_iscsi(source, path), always=_validate_iscsi_name
    ),
    "glusterfs": _required("endpoints", "path"),
    "flocker": _simple(provider_volumes.validate_flocker),
    "persistentVolumeClaim": _required("claimName"),
    "rbd": _required("monitors", "image"),
    "cinder": _simple(provider_volumes.validate_cinder),
    "cephfs": VolumeSourceRule(_required("monitors").validate, refused_as="cephFS"),
    "quobyte": _simple(network_volumes.validate_quobyte),
    "downwardAPI": _simple(validate_downward_api, refused_as="downwarAPI"),
    "fc": _simple(network_volumes.validate_fibre_channel),
    "flexVolume": _simple(provider_volumes.validate_flex_volume),
    "configMap": _simple(validate_config_map),
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": _simple(provider_volumes.validate_azure_disk),
    "storageos": _simple(provider_volumes.validate_storage_os),
    "projected": VolumeSourceRule(
        lambda source, path, context: validate_projected(
            source, path, allow_any_token_path=context.options.allow_non_local_token_path
        )
    ),
    "scaleIO": _required("gateway", "system", "volumeName"),
    "csi": _simple(_validate_csi),
    "ephemeral": VolumeSourceRule(_validate_ephemeral),
    "image": VolumeSourceRule(_validate_image),
}
