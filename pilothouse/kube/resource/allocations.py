"""Status of a claim: allocated devices, consumers and device status."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.kube.resource import requests
from pilothouse.kube.resource.names import (
    UNLIMITED,
    dns_label_name,
    validate_driver_name,
    validate_pool_name,
    validate_set,
    validate_slice,
    validate_uid,
)
from pilothouse.kube.resource.printed_claims import printed_allocation
from pilothouse.kube.validation.fields import non_empty, required_one_of
from pilothouse.kube.validation.selectors import validate_node_selector
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, too_long, too_many
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.addresses import format_ip, not_canonical, parse_cidr_sloppy
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal
from pilothouse.machinery.validation.labels import validate_label_name

MAX_RESERVED = 256
MAX_RESULTS = 32
MAX_BINDING_CONDITIONS = 4
MAX_DEVICE_CONDITIONS = 8

_SOURCES = ("FromClaim", "FromClass")

MAX_INTERFACE_NAME = 256

MAX_HARDWARE_ADDRESS = 128

MAX_IPS = 16

_MAPPED_PREFIX = 96


@dataclass(frozen=True, slots=True)
class DeviceId:
    """A device, or a share of a device."""

    driver: str
    pool: str
    device: str
    share: str

    @property
    def printed(self) -> Json:
        return {"Driver": self.driver, "Pool": self.pool, "Device": self.device, "ShareID": self.share}


def device_id(device: Json) -> DeviceId:
    return DeviceId(*(text(device, name) for name in ("driver", "pool", "device", "shareID")))


def allocated_devices(status: Json) -> set[DeviceId]:
    return {device_id(result) for result in items(status, "allocation", "devices", "results")}


def validate_claim_status(
    status: Json, old: Json, path: Path, *, names: requests.RequestNames, deleted: bool
) -> Errors:
    reserved = path.child("reservedFor")
    yield from validate_set(
        items(status, "reservedFor"), MAX_RESERVED, _validate_user, path=reserved, key=lambda user: text(user, "uid")
    )
    devices_path = path.child("devices")
    allocated, devices = allocated_devices(status), items(status, "devices")

    def check(device: Json, where: Path) -> Errors:
        return _validate_device(device, where, allocated)

    yield from validate_slice(devices, UNLIMITED, check, devices_path)
    seen: set[DeviceId] = set()
    for position, device in enumerate(devices):
        if (identity := device_id(device)) in seen:
            yield duplicate(devices_path.index(position), identity.printed)
        seen.add(identity)
    users, before = items(status, "reservedFor"), items(old, "reservedFor")
    if users:
        if status.get("allocation") is None:
            yield forbidden(reserved, "may not be specified when `allocated` is not set")
        elif deleted and any(user not in before for user in users):
            reason = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden(reserved, reason)
    new_allocation, old_allocation = status.get("allocation"), old.get("allocation")
    if new_allocation is None:
        return
    if old_allocation is None:
        allocation_path = path.child("allocation")
        allocation, where = part(new_allocation, "devices"), allocation_path.child("devices")
        results, configs = items(allocation, "results"), items(allocation, "config")
        yield from validate_slice(results, MAX_RESULTS, _result_check(names), where.child("results"))
        # Both the class and the claim contribute configurations.
        yield from validate_slice(configs, 2 * requests.MAX_CONFIGURATIONS, _config_check(names), where.child("config"))
        if new_allocation.get("nodeSelector") is not None:
            yield from validate_node_selector(new_allocation["nodeSelector"], allocation_path.child("nodeSelector"))
    elif not semantically_equal(new_allocation, old_allocation):
        yield invalid(path.child("allocation"), printed_allocation(new_allocation), FIELD_IMMUTABLE)


def _validate_user(user: Json, path: Path) -> Errors:
    for field in ("resource", "name", "uid"):
        yield from non_empty(text(user, field), path.child(field))


def _validate_device(device: Json, path: Path, allocated: set[DeviceId]) -> Errors:
    yield from validate_driver_name(text(device, "driver"), path.child("driver"))
    yield from validate_pool_name(text(device, "pool"), path.child("pool"))
    yield from dns_label_name(text(device, "device"), path.child("device"))
    if device.get("shareID") is not None:
        yield from validate_uid(device["shareID"], path.child("shareID"))
    if (each := device_id(device)) not in allocated:
        yield invalid(path, each.printed, "must be an allocated device in the claim")
    conditions = items(device, "conditions")
    if len(conditions) > MAX_DEVICE_CONDITIONS:
        yield too_many(path.child("conditions"), len(conditions), MAX_DEVICE_CONDITIONS)
    yield from validate_conditions(conditions, path.child("conditions"))
    if device.get("data") is not None:
        yield from requests.validate_raw_object(device["data"], path.child("data"))
    yield from validate_network_data(device.get("networkData"), path.child("networkData"))


def _result_check(names: requests.RequestNames) -> Callable[[Json, Path], Errors]:
    def check(result: Json, path: Path) -> Errors:
        yield from names.validate(text(result, "request"), path.child("request"))
        yield from validate_driver_name(text(result, "driver"), path.child("driver"))
        yield from validate_pool_name(text(result, "pool"), path.child("pool"))
        yield from dns_label_name(text(result, "device"), path.child("device"))
        yield from validate_binding_conditions(result, path)
        if result.get("shareID") is not None:
            yield from validate_uid(result["shareID"], path.child("shareID"))

    return check


def _config_check(names: requests.RequestNames) -> Callable[[Json, Path], Errors]:
    def check(config: Json, path: Path) -> Errors:
        yield from required_one_of(text(config, "source"), path.child("source"), _SOURCES)
        yield from names.validate_all(config, path)
        yield from requests.validate_configuration(config, path)

    return check


def validate_binding_conditions(device: Json, path: Path) -> Errors:
    """Require both or neither of binding conditions and failure conditions, without duplicates."""
    waiting, failing = items(device, "bindingConditions"), items(device, "bindingFailureConditions")
    to_wait, to_fail = path.child("bindingConditions"), path.child("bindingFailureConditions")
    for conditions, where in ((waiting, to_wait), (failing, to_fail)):
        yield from validate_slice(conditions, MAX_BINDING_CONDITIONS, validate_label_name, where)
    seen: set[str] = set()
    for position, value in enumerate(waiting):
        if value in seen:
            yield duplicate(to_wait.index(position), value)
        seen.add(value)
    seen.clear()
    for position, condition in enumerate(failing):
        if condition in seen:
            yield duplicate(to_fail.index(position), condition)
        seen.add(condition)
        if condition in waiting:
            reason = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(to_fail.index(position), condition, reason)
    if failing and not waiting:
        reason = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(to_wait, device.get("bindingConditions"), reason)
    if waiting and not failing:
        reason = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(to_fail, device.get("bindingFailureConditions"), reason)


def validate_network_data(data: Json | None, path: Path) -> Errors:
    if data is None:
        return
    for field, limit in (("interfaceName", MAX_INTERFACE_NAME), ("hardwareAddress", MAX_HARDWARE_ADDRESS)):
        if len(text(data, field).encode()) > limit:
            yield too_long(path.child(field), limit)
    yield from validate_set(items(data, "ips"), MAX_IPS, _validate_interface_address, path=path.child("ips"))


def _validate_interface_address(value: str, path: Path) -> Errors:
    """Validate an address in CIDR notation."""
    cidr = parse_cidr_sloppy(value)
    if cidr is None:
        reason = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, value, reason)
        return
    address = format_ip(cidr.address)
    bits = cidr.bits - _MAPPED_PREFIX if ":" not in address and cidr.bits > 32 else cidr.bits
    canonical = f"{address}/{bits}"
    if value != canonical:
        yield not_canonical(path, value, canonical)
