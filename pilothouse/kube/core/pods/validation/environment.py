"""Environment variables and where their values come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.validation.field_references import (
    ENV_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from pilothouse.kube.validation.fields import dns_label, follow, no_backsteps
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_config_map_key, is_relaxed_env_var_name
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

_TOO_MANY_SOURCES = "may not have more than one field specified at a time"


def validate_env(variables: Sequence[Json], path: Path) -> Errors:
    for position, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(path.index(position).child("name"))
        elif messages := is_relaxed_env_var_name(name):
            for message in messages:
                yield invalid(path.index(position).child("name"), name, message)
        if (source := variable.get("valueFrom")) is not None:
            has_value = bool(variable.get("value"))
            yield from _validate_value_from(source, path.index(position).child("valueFrom"), has_value=has_value)


def _validate_value_from(source: Json, path: Path, *, has_value: bool) -> Errors:
    found = 0
    for name, validate in _SOURCES.items():
        if (reference := source.get(name)) is not None:
            found += 1
            yield from validate(reference, path.child(name))
    if not found:
        files = enabled("EnvFiles")
        *names, last = (f"`{name}`" for name in _SOURCES if files or name != "fileKeyRef")
        yield invalid(path, "", f"must specify one of: {', '.join(names)} or {last}")
    elif has_value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif found > 1:
        yield invalid(path, "", _TOO_MANY_SOURCES)


def _validate_key(reference: Json, path: Path) -> Errors:
    yield from follow(name_is_dns_subdomain, reference.get("name") or "", path.child("name"))
    if not reference.get("key"):
        yield required(path.child("key"))
    else:
        yield from follow(is_config_map_key, reference["key"], path.child("key"))


def _validate_file_key(reference: Json, path: Path) -> Errors:
    if not reference.get("key"):
        yield required(path.child("key"))
    else:
        yield from follow(is_relaxed_env_var_name, reference["key"], path.child("key"))
    if not reference.get("volumeName"):
        yield required(path.child("volumeName"))
    else:
        yield from dns_label(reference["volumeName"], path.child("volumeName"))
    if not reference.get("path"):
        yield required(path.child("path"))
    else:
        yield from no_backsteps(reference["path"], path.child("path"))


_SOURCES: dict[str, Callable[[Json, Path], Errors]] = {
    "fieldRef": lambda reference, path: validate_field_reference(reference, ENV_FIELDS, path),
    "resourceFieldRef": validate_resource_reference,
    "configMapKeyRef": _validate_key,
    "secretKeyRef": _validate_key,
    "fileKeyRef": _validate_file_key,
}


def validate_env_from(sources: Sequence[Json], path: Path) -> Errors:
    for position, source in enumerate(sources):
        at, found = path.index(position), 0
        if source.get("prefix"):
            yield from follow(is_relaxed_env_var_name, source["prefix"], at.child("prefix"))
        for name in ("configMapRef", "secretRef"):
            if (reference := source.get(name)) is not None:
                found += 1
                yield from _validate_env_source(reference, at.child(name, "name"))
        if not found:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif found > 1:
            yield invalid(path, "", _TOO_MANY_SOURCES)


def _validate_env_source(reference: Json, path: Path) -> Errors:
    name = reference.get("name")
    if not name:
        yield required(path)
        return
    for message in name_is_dns_subdomain(name, True):
        yield invalid(path, name, message)
