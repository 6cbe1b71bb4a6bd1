"""Where a node once took its configuration from. The feature is gone; objects that still use it stay checked."""

from __future__ import annotations

from pilothouse.kube.validation.fields import Rule, follow, non_empty
from pilothouse.machinery.field import Errors, FieldError, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_config_map_key, name_is_dns_label, name_is_dns_subdomain

_RULES: dict[str, Rule] = {
    "namespace": name_is_dns_label,
    "name": name_is_dns_subdomain,
    "kubeletConfigKey": is_config_map_key,
}


def validate_spec_source(source: Json, path: Path) -> Errors:
    config_map = source.get("configMap")
    if config_map is None:
        yield _missing(path)
        return
    for name in ("uid", "resourceVersion"):
        if config_map.get(name):
            yield forbidden(path.child("configMap", name), f"{name} must not be set in spec")
    yield from _validate_config_map(config_map, path.child("configMap"))


def validate_status_sources(status: Json, path: Path) -> Errors:
    for name in ("assigned", "active", "lastKnownGood"):
        if status.get(name) is not None:
            yield from _validate_status_source(status[name], path.child(name))


def _validate_status_source(source: Json, path: Path) -> Errors:
    config_map = source.get("configMap")
    if config_map is None:
        yield _missing(path)
        return
    for name in ("uid", "resourceVersion"):
        yield from non_empty(config_map.get(name), path.child("configMap", name))
    yield from _validate_config_map(config_map, path.child("configMap"))


def _missing(path: Path) -> FieldError:
    return invalid(path, {"ConfigMap": None}, "exactly one reference subfield must be non-nil")


def _validate_config_map(config_map: Json, path: Path) -> Errors:
    for name, rule in _RULES.items():
        if not config_map.get(name):
            yield required(path.child(name))
        else:
            yield from follow(rule, config_map[name], path.child(name))
