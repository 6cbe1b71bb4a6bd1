"""The devices of a resource slice: attributes, capacity, taints, and the nodes that can reach them."""

from __future__ import annotations

from pilothouse.kube.resource.allocations import validate_binding_conditions
from pilothouse.kube.resource.capacity import validate_exclusive_capacity, validate_shared_capacity
from pilothouse.kube.resource.limited_collections import UNLIMITED, validate_map, validate_set, validate_slice
from pilothouse.kube.resource.names import MAX_QUALIFIED_NAME, dns_label_name, validate_qualified_name
from pilothouse.kube.resource.taints import validate_taint
from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.kube.validation.node_selectors import validate_node_selector
from pilothouse.kube.validation.resource_names import is_native
from pilothouse.machinery import semver
from pilothouse.machinery.field import Errors, Path, invalid, not_found, required, too_long
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import semantically_equal

MAX_ATTRIBUTES_AND_CAPACITIES = 32
MAX_VALUE = 64
MAX_TAINTS = 16
MAX_COUNTER_SETS_PER_DEVICE = 2
MAX_COUNTERS = 32
UNSET_OR_TRUE = "must be either unset or set to true"

_VALUES = {"int": "IntValue", "bool": "BoolValue", "string": "StringValue", "version": "VersionValue"}
_LISTS = ("IntValues", "BoolValues", "StringValues", "VersionValues")
_PER_DEVICE = "is set to true in the ResourceSlice spec"
_ONE_NODE_FIELD = (
    f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` {_PER_DEVICE}"
)


def validate_device(device: Json, path: Path, *, old: Json | None, per_device_nodes: bool) -> Errors:
    yield from dns_label_name(text(device, "name"), path.child("name"))
    attributes, capacity = part(device, "attributes"), part(device, "capacity")
    if (count := len(attributes) + len(capacity)) > MAX_ATTRIBUTES_AND_CAPACITIES:
        why = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES_AND_CAPACITIES}"
        yield invalid(path, count, why)
    yield from _validate_qualities(device, path)
    if old is None or not semantically_equal(old.get("taints"), device.get("taints")):
        yield from validate_slice(items(device, "taints"), MAX_TAINTS, validate_taint, path.child("taints"))
    yield from validate_set(
        items(device, "consumesCounters"),
        MAX_COUNTER_SETS_PER_DEVICE,
        _validate_consumption,
        path=path.child("consumesCounters"),
        key=lambda each: text(each, "counterSet"),
    )
    yield from _validate_nodes(device, path) if per_device_nodes else _forbid_nodes(device, path)
    yield from validate_binding_conditions(device, path)
    mappings = part(device, "nodeAllocatableResourceMappings")
    for name, mapping in sorted(mappings.items()):
        yield from _validate_mapping(name, mapping, capacity, path.child("nodeAllocatableResourceMappings").key(name))


def _validate_mapping(name: str, mapping: Json, capacity: Json, path: Path) -> Errors:
    """What a device takes from a resource of its node."""
    multiplier, key = mapping["allocationMultiplier"], mapping.get("capacityKey")
    if not is_native(name):
        yield invalid(path, name, "must be a node allocatable resource name")
    if parse_quantity(multiplier).sign <= 0:
        yield invalid(path.child("allocationMultiplier"), multiplier, "must be positive")
    if key == "":
        yield invalid(path.child("capacityKey"), "", "capacityKey must not be an empty string")
    elif key is not None and key not in capacity:
        yield not_found(path.child("capacityKey"), key)


def _validate_qualities(device: Json, path: Path) -> Errors:
    shared = bool(device.get("allowMultipleAllocations"))
    checks = {
        "attributes": _validate_attribute,
        "capacity": validate_shared_capacity if shared else validate_exclusive_capacity,
    }
    for field, check in checks.items():
        yield from validate_map(
            part(device, field),
            UNLIMITED,
            check_key=validate_qualified_name,
            check=check,
            path=path.child(field),
            shown_length=MAX_QUALIFIED_NAME,
        )


def _validate_attribute(attribute: Json, path: Path) -> Errors:
    given = [kind for kind in _VALUES if attribute.get(kind) is not None]
    if "string" in given:
        yield from _validate_length(attribute["string"], path.child("string"))
    if "version" in given:
        if semver.parts_of(attribute["version"]) is None:
            why = "must be a string compatible with semver.org spec 2.0.0"
            yield invalid(path.child("version"), attribute["version"], why)
        yield from _validate_length(attribute["version"], path.child("version"))
    if len(given) != 1:
        shown = {name: attribute.get(kind) for kind, name in _VALUES.items()} | dict.fromkeys(_LISTS)
        yield invalid(path, shown if given else "", "exactly one value must be specified")


def _validate_length(value: str, path: Path) -> Errors:
    if len(value.encode()) > MAX_VALUE:
        yield too_long(path, MAX_VALUE)


def _validate_consumption(consumption: Json, path: Path) -> Errors:
    return validate_counters(consumption, path, name_field="counterSet")


def validate_counter_set(counter_set: Json, path: Path) -> Errors:
    return validate_counters(counter_set, path, name_field="name")


def validate_counters(owner: Json, path: Path, *, name_field: str) -> Errors:
    if name := text(owner, name_field):
        yield from dns_label_name(name, path.child(name_field))
    else:
        yield required(path.child(name_field))
    if not part(owner, "counters"):
        yield required(path.child("counters"))
        return
    yield from validate_map(
        part(owner, "counters"),
        MAX_COUNTERS,
        check_key=dns_label_name,
        check=lambda counter, where: iter(()),
        path=path.child("counters"),
        shown_length=63,
    )


def _validate_nodes(device: Json, path: Path) -> Errors:
    given: list[str] = []
    if (name := device.get("nodeName")) is not None:
        if name:
            given.append("`nodeName`")
            yield from dns_subdomain(name, path.child("nodeName"))
        else:
            yield invalid(path.child("nodeName"), name, "must not be empty")
    if device.get("nodeSelector") is not None:
        given.append("`nodeSelector`")
        yield from validate_node_selector(device["nodeSelector"], path.child("nodeSelector"))
    if device.get("allNodes"):
        given.append("`allNodes`")
    elif device.get("allNodes") is not None:
        yield invalid(path.child("allNodes"), False, UNSET_OR_TRUE)
    if not given:
        yield required(path, _ONE_NODE_FIELD)
    elif len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", _ONE_NODE_FIELD)


def _forbid_nodes(device: Json, path: Path) -> Errors:
    if any(device.get(field) is not None for field in ("nodeName", "nodeSelector", "allNodes")):
        only = f"can only be set if `perDeviceNodeSelection` {_PER_DEVICE}"
        yield invalid(path, None, f"`nodeName`, `nodeSelector` and `allNodes` {only}")
