"""Volumes: each has a name and exactly one source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.volume_sources import SOURCES, VolumeContext
from pilothouse.kube.validation.fields import dns_label
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, FieldError, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

NO_VOLUME_TYPE = "must specify a volume type"
TOO_MANY_VOLUME_TYPES = "may not specify more than 1 volume type"


@dataclass(frozen=True, slots=True)
class CheckedVolumes:
    """The valid volumes by name, which containers may mount, and what is wrong with the others."""

    valid: dict[str, Json] = field(default_factory=dict)
    errors: list[FieldError] = field(default_factory=list)


def check_volumes(
    volumes: Sequence[Json], path: Path, options: PodValidationOptions, *, pod_name: str = ""
) -> CheckedVolumes:
    """`pod_name` is that of a real pod, from which the names of its generated claims are made."""
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
            why = "must not reference a PVC that gets created for an ephemeral volume"
            checked.errors.append(invalid(at.child("persistentVolumeClaim", "claimName"), claim, why))
    return checked


def _validate_name(name: str, path: Path, taken: dict[str, Json]) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from dns_label(name, path)
    if name in taken:
        yield duplicate(path, name)


def _validate_source(volume: Json, context: VolumeContext) -> Errors:
    path, found = context.path, False
    if (empty_dir := volume.get("emptyDir")) is not None:
        found = True
        if "sizeLimit" in empty_dir and parse_quantity(empty_dir["sizeLimit"]).sign < 0:
            why = "SizeLimit field must be a valid resource quantity"
            yield forbidden(path.child("emptyDir", "sizeLimit"), why)
    for name in _sources_of(volume):
        rule = SOURCES[name]
        if (source := volume.get(name)) is None:
            continue
        if found:
            yield forbidden(path.child(rule.refused_as or name), TOO_MANY_VOLUME_TYPES)
        else:
            found = True
            yield from rule.validate(source, path.child(rule.shown_as or name), context)
        if rule.always is not None:
            yield from rule.always(source, path, context)
    if not found:
        yield required(path, NO_VOLUME_TYPE)


def _sources_of(volume: Json) -> Iterable[str]:
    """In the order of the table. Few volumes have more than one."""
    named = [name for name in volume if name in SOURCES]
    return named if len(named) < 2 else [name for name in SOURCES if name in volume]
