"""Devices of a resource slice: attributes, capacity, taints and node access."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.resource import names
from pilothouse.kube.resource.allocations import validate_binding_conditions
from pilothouse.kube.resource.taints import validate_taint
from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.kube.validation.resource_names import is_native
from pilothouse.kube.validation.selectors import validate_node_selector
from pilothouse.machinery import versions
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_found, required, too_long
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.quantity import Quantity, parse_quantity, wrapped_int64
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

MAX_VALID_VALUES = 10


def validate_device(device: Json, path: Path, *, old: Json | None, per_device_nodes: bool) -> Errors:
    yield from names.dns_label_name(text(device, "name"), path.child("name"))
    attributes, capacity = part(device, "attributes"), part(device, "capacity")
    if (count := len(attributes) + len(capacity)) > MAX_ATTRIBUTES_AND_CAPACITIES:
        reason = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES_AND_CAPACITIES}"
        yield invalid(path, count, reason)
    yield from _validate_qualities(device, path)
    if old is None or not semantically_equal(old.get("taints"), device.get("taints")):
        yield from names.validate_slice(items(device, "taints"), MAX_TAINTS, validate_taint, path.child("taints"))
    yield from names.validate_set(
        items(device, "consumesCounters"),
        MAX_COUNTER_SETS_PER_DEVICE,
        lambda consumption, path: validate_counters(consumption, path, name_field="counterSet"),
        path=path.child("consumesCounters"),
        key=lambda each: text(each, "counterSet"),
    )
    yield from _validate_nodes(device, path) if per_device_nodes else _forbid_nodes(device, path)
    yield from validate_binding_conditions(device, path)
    mappings = part(device, "nodeAllocatableResourceMappings")
    for name, mapping in sorted(mappings.items()):
        mapping_path = path.child("nodeAllocatableResourceMappings").key(name)
        multiplier, key = mapping["allocationMultiplier"], mapping.get("capacityKey")
        if not is_native(name):
            yield invalid(mapping_path, name, "must be a node allocatable resource name")
        if parse_quantity(multiplier).sign <= 0:
            yield invalid(mapping_path.child("allocationMultiplier"), multiplier, "must be positive")
        if key == "":
            yield invalid(mapping_path.child("capacityKey"), "", "capacityKey must not be an empty string")
        elif key is not None and key not in capacity:
            yield not_found(mapping_path.child("capacityKey"), key)


def _validate_qualities(device: Json, path: Path) -> Errors:
    shared = bool(device.get("allowMultipleAllocations"))
    checks = {
        "attributes": _validate_attribute,
        "capacity": validate_shared_capacity if shared else validate_exclusive_capacity,
    }
    for field, check in checks.items():
        yield from names.validate_map(
            part(device, field),
            names.UNLIMITED,
            check_key=names.validate_qualified_name,
            check=check,
            path=path.child(field),
            shown_length=names.MAX_QUALIFIED_NAME,
        )


def _validate_attribute(attribute: Json, path: Path) -> Errors:
    given = [kind for kind in _VALUES if attribute.get(kind) is not None]
    if "string" in given:
        yield from _validate_length(attribute["string"], path.child("string"))
    if "version" in given:
        if versions.parts_of(attribute["version"]) is None:
            reason = "must be a string compatible with semver.org spec 2.0.0"
            yield invalid(path.child("version"), attribute["version"], reason)
        yield from _validate_length(attribute["version"], path.child("version"))
    if len(given) != 1:
        shown = {name: attribute.get(kind) for kind, name in _VALUES.items()} | dict.fromkeys(_LISTS)
        yield invalid(path, shown if given else "", "exactly one value must be specified")


def _validate_length(value: str, path: Path) -> Errors:
    if len(value.encode()) > MAX_VALUE:
        yield too_long(path, MAX_VALUE)


def validate_counter_set(counter_set: Json, path: Path) -> Errors:
    return validate_counters(counter_set, path, name_field="name")


def validate_counters(owner: Json, path: Path, *, name_field: str) -> Errors:
    if name := text(owner, name_field):
        yield from names.dns_label_name(name, path.child(name_field))
    else:
        yield required(path.child(name_field))
    if not part(owner, "counters"):
        yield required(path.child("counters"))
        return
    yield from names.validate_map(
        part(owner, "counters"),
        MAX_COUNTERS,
        check_key=names.dns_label_name,
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


def validate_shared_capacity(capacity: Json, path: Path) -> Errors:
    policy, where = capacity.get("requestPolicy"), path.child("requestPolicy")
    if policy is None:
        return
    values, valid_range = items(policy, "validValues"), policy.get("validRange")
    if values and valid_range is not None:
        reason = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(where, reason)
        return
    kind = "validValues" if values else "validRange"
    if not values and valid_range is None:
        return
    if policy.get("default") is None:
        yield required(where.child("default"), f"required when {kind} is defined")
        return
    whole, default = parse_quantity(capacity.get("value") or "0"), parse_quantity(policy["default"])
    if values:
        yield from _validate_values([parse_quantity(value) for value in values], default, whole, where.child(kind))
    else:
        yield from _validate_range(valid_range or {}, default, whole, where.child(kind))


def validate_exclusive_capacity(capacity: Json, path: Path) -> Errors:
    if capacity.get("requestPolicy") is not None:
        yield forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true")


def _validate_values(values: Sequence[Quantity], default: Quantity, whole: Quantity, path: Path) -> Errors:
    for position in range(1, len(values)):
        if values[position - 1] > values[position]:
            yield invalid(path.index(position), str(values[position]), "values must be sorted in ascending order")

    def check(value: Quantity, where: Path) -> Errors:
        if value > whole:
            yield invalid(where, str(value), f"option is larger than capacity value: {whole}")

    yield from names.validate_set(values, MAX_VALID_VALUES, check, path=path, key=lambda value: value.value())
    if len(values) > MAX_VALID_VALUES or all(value.compare(default) for value in values):
        yield invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _validate_range(valid: Json, default: Quantity, whole: Quantity, path: Path) -> Errors:
    if valid.get("min") is None:
        yield required(path.child("min"), "required when validRange is defined")
        return
    low = parse_quantity(valid["min"])
    high = parse_quantity(valid["max"]) if valid.get("max") is not None else None
    if low > whole:
        yield invalid(path.child("min"), str(low), f"min is larger than capacity value: {whole}")
    if default < low:
        yield invalid(path.child("min"), str(default), f"default is less than min: {low}")
    if high is not None:
        max_path = path.child("max")
        if low > high:
            yield invalid(max_path, str(low), f"min is larger than max: {high}")
        if high > whole:
            yield invalid(max_path, str(high), f"max is larger than capacity value: {whole}")
        if default > high:
            yield invalid(max_path, str(default), f"default is more than max: {high}")
    if valid.get("step") is not None:
        step = parse_quantity(valid["step"])
        ends = [default] if high is None else [default, high]
        step_path = path.child("step")
        if (first := low + step) > whole:
            yield invalid(step_path, str(step), f"one step {first} is larger than capacity value: {whole}")
        for value in ends:
            # A step of 0 panics upstream; here the value does not change.
            added = wrapped_int64(value.value() - low.value())
            if added % (step.value() or 1) or not step.value():
                yield invalid(step_path, str(value), f"value is not a multiple of a given step ({step}) from ({low})")
