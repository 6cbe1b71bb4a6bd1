"""Volumes and volume sources. A volume has a name and exactly one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.kube.core.pods.validation import network_volumes
from pilothouse.kube.core.pods.validation.file_volumes import (
    validate_config_map,
    validate_downward_api,
    validate_projected,
    validate_secret,
)
from pilothouse.kube.core.pods.validation.network_volumes import ISCSI_NAME_TOO_LONG, is_iscsi_name_too_long
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.fields import (
    dns_label,
    follow,
    local_descending_path,
    no_backsteps,
    non_empty,
    required_one_of,
)
from pilothouse.kube.validation.volume_claims import validate_claim_template
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.names import name_is_dns_subdomain

NO_VOLUME_TYPE = "must specify a volume type"
TOO_MANY_VOLUME_TYPES = "may not specify more than 1 volume type"


@dataclass(frozen=True, slots=True)
class CheckedVolumes:
    """Valid volumes by name, and the errors of the other volumes."""

    valid: dict[str, Json] = field(default_factory=dict)
    errors: list[FieldError] = field(default_factory=list)


def check_volumes(
    volumes: Sequence[Json], path: Path, options: PodValidationOptions, *, pod_name: str = ""
) -> CheckedVolumes:
    """`pod_name` is the name of a real pod, for the names of generated claims."""
    checked = CheckedVolumes()
    generated = {f"{pod_name}-{volume.get('name')}" for volume in volumes if pod_name and "ephemeral" in volume}
    for position, volume in enumerate(volumes):
        at, name = path.index(position), volume.get("name") or ""
        errors = list(_validate_source(volume, VolumeContext(at, name, pod_name, options)))
        errors.extend(_validate_name(name, at.child("name"), checked.valid))
        if not errors:
            checked.valid[name] = volume
        checked.errors.extend(errors)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in generated:
            reason = "must not reference a PVC that gets created for an ephemeral volume"
            checked.errors.append(invalid(at.child("persistentVolumeClaim", "claimName"), claim, reason))
    return checked


def _validate_name(name: str, path: Path, taken: dict[str, Json]) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from dns_label(name, path)
    if name in taken:
        yield duplicate(path, name)


def _validate_source(volume: Json, context: VolumeContext) -> Errors:
    path, has_source = context.path, False
    if (empty_dir := volume.get("emptyDir")) is not None:
        has_source = True
        if "sizeLimit" in empty_dir and parse_quantity(empty_dir["sizeLimit"]).sign < 0:
            reason = "SizeLimit field must be a valid resource quantity"
            yield forbidden(path.child("emptyDir", "sizeLimit"), reason)
    for name in _sources_of(volume):
        rule = SOURCES[name]
        if (source := volume.get(name)) is None:
            continue
        if has_source:
            yield forbidden(path.child(rule.refused_as or name), TOO_MANY_VOLUME_TYPES)
        else:
            has_source = True
            yield from rule.validate(source, path.child(rule.shown_as or name), context)
        if rule.always is not None:
            yield from rule.always(source, path, context)
    if not has_source:
        yield required(path, NO_VOLUME_TYPE)


def _sources_of(volume: Json) -> Iterable[str]:
    """Return the sources in the order of SOURCES. Fast path for a single source."""
    named = [name for name in volume if name in SOURCES]
    return named if len(named) < 2 else [name for name in SOURCES if name in volume]


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
    """The volume of a source. `path` is the path of the volume."""

    path: Path
    volume_name: str
    pod_name: str
    options: PodValidationOptions


Validate: TypeAlias = Callable[[Json, Path, VolumeContext], Errors]


@dataclass(frozen=True, slots=True)
class VolumeSourceRule:
    """`shown_as` and `refused_as`: upstream's spelling in errors, if different from the name of the field."""

    validate: Validate
    shown_as: str = ""
    refused_as: str = ""
    always: Validate | None = None
    """Validated even if the volume already has another source."""


def _simple(validate: Callable[[Json, Path], Errors], shown_as: str = "", refused_as: str = "") -> VolumeSourceRule:
    return VolumeSourceRule(lambda source, path, _: validate(source, path), shown_as, refused_as)


def required_fields(*fields: str) -> Callable[[Json, Path], Errors]:
    def validate(source: Json, path: Path) -> Errors:
        for name in fields:
            yield from non_empty(source.get(name), path.child(name))

    return validate


def _required(*fields: str) -> VolumeSourceRule:
    return _simple(required_fields(*fields))


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
            reason = f"PVC name {quote(claim)}: {message}"
            yield invalid(context.path.child("name"), context.volume_name, reason)


def _validate_image(source: Json, path: Path, context: VolumeContext) -> Errors:
    needed = context.options.resource_is_pod or version_rules.holds("ImagesOfTemplates")
    if needed and not context.options.allow_empty_image_reference:
        yield from non_empty(source.get("reference"), path.child("reference"))
    yield from required_one_of(source.get("pullPolicy") or "", path.child("pullPolicy"), PULL_POLICIES)


def _validate_csi(source: Json, path: Path) -> Errors:
    yield from network_volumes.validate_csi_driver_name(source.get("driver") or "", path.child("driver"))
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
    "gcePersistentDisk": _simple(network_volumes.validate_gce_disk, shown_as="persistentDisk"),
    "awsElasticBlockStore": _simple(network_volumes.validate_aws_disk),
    "secret": _simple(validate_secret),
    "nfs": _simple(network_volumes.validate_nfs),
    "iscsi": VolumeSourceRule(
        lambda source, path, _: network_volumes.validate_iscsi(source, path), always=_validate_iscsi_name
    ),
    "glusterfs": _required("endpoints", "path"),
    "flocker": _simple(network_volumes.validate_flocker),
    "persistentVolumeClaim": _required("claimName"),
    "rbd": _required("monitors", "image"),
    "cinder": _simple(network_volumes.validate_cinder),
    "cephfs": VolumeSourceRule(_required("monitors").validate, refused_as="cephFS"),
    "quobyte": _simple(network_volumes.validate_quobyte),
    "downwardAPI": _simple(validate_downward_api, refused_as="downwarAPI"),
    "fc": _simple(network_volumes.validate_fibre_channel),
    "flexVolume": _simple(network_volumes.validate_flex_volume),
    "configMap": _simple(validate_config_map),
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": _simple(network_volumes.validate_azure_disk),
    "storageos": _simple(network_volumes.validate_storage_os),
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
