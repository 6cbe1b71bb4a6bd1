"""Validation of nodes and taints, including the annotations of older clients.

Dynamic kubelet configuration (`configSource`) is removed as a feature; existing values are still validated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pilothouse.kube.validation.addresses import cidr_family, legacy_cidr
from pilothouse.kube.validation.fields import Rule, follow, non_empty, positive, required_one_of
from pilothouse.kube.validation.resource_names import validate_resource_amount
from pilothouse.kube.validation.tolerations import TAINT_EFFECTS
from pilothouse.machinery import version_rules
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.field import (
    Errors,
    ErrorType,
    FieldError,
    Path,
    declared,
    duplicate,
    forbidden,
    internal,
    invalid,
    required,
    root,
)
from pilothouse.machinery.gofmt import json_type, quote
from pilothouse.machinery.objects import Json, annotations_of, items, part, text
from pilothouse.machinery.validation import names
from pilothouse.machinery.validation.addresses import parse_cidr_sloppy
from pilothouse.machinery.validation.labels import validate_label_name

_META = root("metadata")
_POD_CIDRS = root("spec", "podCIDRs")
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_MAX_FEATURE = 253
_CONFIG_MAP_RULES: dict[str, Rule] = {
    "namespace": names.name_is_dns_label,
    "name": names.name_is_dns_subdomain,
    "kubeletConfigKey": names.is_config_map_key,
}


def validate_node(node: Json) -> Errors:
    """Validate all fields except the common metadata."""
    yield from validate_annotations(annotations_of(node), _META.child("annotations"))
    yield from validate_taints(items(node, "spec", "taints"), _META.child("taints"))
    yield from _validate_resources(node)
    swap = part(node, "status", "nodeInfo", "swap")
    if swap.get("capacity") is not None:
        yield from positive(swap["capacity"], _META.child("nodeSwapStatus", "capacity"))
    yield from _validate_features(items(node, "status", "declaredFeatures"), root("status", "declaredFeatures"))
    cidrs = items(node, "spec", "podCIDRs")
    for position, cidr in enumerate(cidrs):
        yield from legacy_cidr(_POD_CIDRS.index(position), cidr)
    if len(cidrs) >= 2:
        broken = next((cidr for cidr in cidrs if parse_cidr_sloppy(cidr) is None), None)
        if broken is not None:
            template = "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{}]: <nil> ({})"
            reason = f"invalid CIDR address: {broken}"
            yield internal(_POD_CIDRS, template.format(cidrs.index(broken), reason))
        if len(cidrs) > 2 or broken is not None or len(set(map(cidr_family, cidrs))) < 2:
            yield invalid(_POD_CIDRS, cidrs, "may specify no more than one CIDR for each IP family")


def validate_node_update(node: Json, old: Json) -> Errors:
    """Validate all fields except the common metadata."""
    yield from validate_annotations(annotations_of(node), _META.child("annotations"))
    yield from _validate_resources(node)
    yield from _validate_features(items(node, "status", "declaredFeatures"), root("status", "declaredFeatures"))
    addresses = items(node, "status", "addresses")
    path = root("status", "addresses")
    seen: set[tuple[str, str]] = set()
    for position, address in enumerate(addresses):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            yield duplicate(path.index(position), {"Type": key[0], "Address": key[1]})
        seen.add(key)
    cidrs = items(node, "spec", "podCIDRs")
    before = items(old, "spec", "podCIDRs")
    reason = 'node updates may not change podCIDR except from "" to valid'
    if before and len(before) != len(cidrs):
        yield forbidden(_POD_CIDRS, reason)
    else:
        for cidr, stored in zip(cidrs, before, strict=False):
            if cidr != stored:
                yield forbidden(_POD_CIDRS, reason)
    if text(old, "spec", "providerID") not in ("", text(node, "spec", "providerID")):
        path, is_set = root("spec", "providerID"), bool(text(node, "spec", "providerID"))
        if version_rules.holds("DeclaredValidation"):
            reason = f"field cannot be {'modified' if is_set else 'cleared'} once set"
            yield declared(invalid(path, None, reason), reason)
        else:
            yield forbidden(path, 'node updates may not change providerID except from "" to valid')
    if part(node, "spec").get("configSource") is not None:
        source_path = root("spec", "configSource")
        config_map = node["spec"]["configSource"].get("configMap")
        if config_map is None:
            yield _no_config_map(source_path)
        else:
            for name in ("uid", "resourceVersion"):
                if config_map.get(name):
                    yield forbidden(source_path.child("configMap", name), f"{name} must not be set in spec")
            yield from _validate_config_map(config_map, source_path.child("configMap"))
    status = part(node, "status", "config")
    for name in ("assigned", "active", "lastKnownGood"):
        if status.get(name) is not None:
            yield from _validate_status_config_source(status[name], root("status", "config").child(name))
    yield from validate_taints(items(node, "spec", "taints"), _META.child("taints"))
    if text(node, "spec", "externalID") != text(old, "spec", "externalID"):
        yield forbidden(root("spec", "externalID"), "may not be updated")


def _validate_resources(node: Json) -> Errors:
    for field in ("capacity", "allocatable"):
        for name, amount in sorted(part(node, "status", field).items()):
            yield from validate_resource_amount(name, amount, root("status", field, name))


def _validate_features(features: Sequence[str], path: Path) -> Errors:
    for position, feature in enumerate(features):
        if problem := _feature_problem(feature):
            yield invalid(path.index(position), feature, f"invalid feature name {quote(feature)}: {problem}")
        if position + 1 == len(features):
            return
        following, at = features[position + 1], path.index(position + 1)
        if feature == following:
            yield duplicate(at, following)
        elif feature > following:
            yield invalid(at, following, "list must be sorted alphabetically")


def _feature_problem(feature: str) -> str:
    if len(feature) > _MAX_FEATURE:
        return f"must be no more than {_MAX_FEATURE} characters"
    if _FEATURE.fullmatch(feature):
        return ""
    return (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
    )


def _validate_status_config_source(source: Json, path: Path) -> Errors:
    config_map = source.get("configMap")
    if config_map is None:
        yield _no_config_map(path)
        return
    for name in ("uid", "resourceVersion"):
        yield from non_empty(config_map.get(name), path.child("configMap", name))
    yield from _validate_config_map(config_map, path.child("configMap"))


def _no_config_map(path: Path) -> FieldError:
    return invalid(path, {"ConfigMap": None}, "exactly one reference subfield must be non-nil")


def _validate_config_map(config_map: Json, path: Path) -> Errors:
    for name, rule in _CONFIG_MAP_RULES.items():
        if not config_map.get(name):
            yield required(path.child(name))
        else:
            yield from follow(rule, config_map[name], path.child(name))


TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"


class _NotRead(Exception):
    """An annotation is not valid JSON of the expected type; the message is Go's."""


def validate_taints(taints: Sequence[Json], path: Path) -> Errors:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        at, key, effect = path.index(position), taint.get("key") or "", taint.get("effect") or ""
        yield from validate_label_name(key, at.child("key"))
        if messages := names.is_valid_label_value(taint.get("value") or ""):
            yield invalid(at.child("value"), taint["value"], ";".join(messages))
        yield from required_one_of(effect, at.child("effect"), TAINT_EFFECTS)
        if (key, effect) in seen:
            # Upstream prints the internal type.
            internal = {"Key": key, "Value": taint.get("value") or "", "Effect": effect}
            internal["TimeAdded"] = taint.get("timeAdded")
            reason = "taints must be unique by key and effect pair"
            yield FieldError(ErrorType.DUPLICATE, str(at), internal, reason)
        seen.add((key, effect))


def validate_annotations(annotations: dict[str, str], path: Path) -> Errors:
    try:
        taints = _parse(annotations.get(TAINTS_ANNOTATION), list, "[]core.Taint")
        yield from validate_taints(taints or (), path.child(TAINTS_ANNOTATION))
    except _NotRead as problem:
        yield invalid(path, TAINTS_ANNOTATION, str(problem))
    try:
        avoided = _parse(annotations.get(AVOID_PODS_ANNOTATION), dict, "v1.AvoidPods")
        for position, entry in enumerate((avoided or {}).get("preferAvoidPods") or ()):
            at = path.child(AVOID_PODS_ANNOTATION).index(position).child("PodSignature")
            controller = (entry.get("podSignature") or {}).get("podController")
            if controller is None:
                yield required(at)
            elif not controller.get("controller"):
                yield invalid(at.child("PodController", "Controller"), False, "must point to a controller")
    except _NotRead as problem:
        yield invalid(path.child("AvoidPods"), AVOID_PODS_ANNOTATION, str(problem))


def _parse(text: str | None, expected: type, go_type: str) -> Any:
    """Parse the value of an annotation. Raises _NotRead."""
    if not text:
        return None
    try:
        value = parse(text.encode()).value
    except JsonError as error:
        raise _NotRead(str(error)) from None
    if value is not None and not isinstance(value, expected):
        raise _NotRead(f"json: cannot unmarshal {json_type(value)} into Go value of type {go_type}")
    return value
