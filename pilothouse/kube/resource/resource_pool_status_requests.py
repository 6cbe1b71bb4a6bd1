"""ResourcePoolStatusRequests: one-time queries of a driver's pools."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.names import validate_long_name_caseless, validate_resource_pool_name
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.fields import dns_subdomain, in_limits
from pilothouse.kube.validation.internal_structs import ANY, NUMBER, TEXT, condition, pointer, slice_of, struct
from pilothouse.machinery.durations import age
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, root, too_long, too_many
from pilothouse.machinery.objects import Json, items, number, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

DEFAULT_LIMIT = 100

MAX_LIMIT = 1000

MAX_POOLS = 1000

MAX_CONDITIONS = 10

MAX_VALIDATION_ERROR = 256

_LEAST = {
    "resourceSliceCount": 1,
    "totalDevices": 0,
    "allocatedDevices": 0,
    "availableDevices": 0,
    "unavailableDevices": 0,
}

_HOW_MANY = {
    "Total": "Total number of",
    "Available": "Number of available",
    "Allocated": "Number of allocated",
    "Unavailable": "Number of unavailable",
}


class ResourcePoolStatusRequestStrategy(SeparateStatusStrategy):
    namespaced = False
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        if part(obj, "spec").get("limit") is None:
            part(obj, "spec")["limit"] = DEFAULT_LIMIT

    def prepare_for_create(self, obj: Json) -> None:
        obj.pop("status", None)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        spec = part(obj, "spec")
        path = root("spec")
        yield from validate_long_name_caseless(text(spec, "driver"), path.child("driver"))
        if (pool := spec.get("poolName")) is not None:
            yield from validate_resource_pool_name(pool, path.child("poolName"))
        yield from in_limits(spec["limit"], path.child("limit"), at_least=1, at_most=MAX_LIMIT)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not semantically_equal(obj.get("spec"), old.get("spec")):
            yield invalid(root("spec"), None, FIELD_IMMUTABLE)


class ResourcePoolStatusRequestStatusStrategy(StatusSubresource, ResourcePoolStatusRequestStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        status, before, path = obj.get("status"), old.get("status"), root("status")
        if semantically_equal(status, before):
            return
        if before is not None:
            yield invalid(path, printed_status(status), FIELD_IMMUTABLE)
        else:
            yield from validate_conditions((status or {}).get("conditions"), path.child("conditions"))
        if status is not None:
            yield from validate_pool_status(status, path)


printed_status = pointer(
    struct(
        PoolCount=ANY,
        Pools=slice_of(
            struct(
                Driver=TEXT,
                PoolName=TEXT,
                Generation=NUMBER,
                ResourceSliceCount=ANY,
                TotalDevices=ANY,
                AllocatedDevices=ANY,
                AvailableDevices=ANY,
                UnavailableDevices=ANY,
                NodeName=ANY,
                ValidationError=ANY,
            )
        ),
        Conditions=slice_of(condition),
    )
)


def validate_pool_status(status: Json, path: Path) -> Errors:
    if (count := status.get("poolCount")) is None:
        yield required(path.child("poolCount"))
    else:
        yield from in_limits(count, path.child("poolCount"), at_least=0)
    pools = items(status, "pools")
    if len(pools) > MAX_POOLS:
        yield too_many(path.child("pools"), len(pools), MAX_POOLS)
    else:
        for position, pool in enumerate(pools):
            yield from _validate_pool(pool, path.child("pools").index(position))
    conditions = items(status, "conditions")
    conditions_path = path.child("conditions")
    if len(conditions) > MAX_CONDITIONS:
        yield too_many(conditions_path, len(conditions), MAX_CONDITIONS)
    else:
        kinds = [text(condition, "type") for condition in conditions]
        for position, kind in enumerate(kinds):
            if kind in kinds[:position]:
                yield duplicate(conditions_path.index(position), condition(conditions[position]))


def _validate_pool(pool: Json, path: Path) -> Errors:
    yield from validate_long_name_caseless(text(pool, "driver"), path.child("driver"))
    if name := text(pool, "poolName"):
        yield from validate_resource_pool_name(name, path.child("poolName"))
    else:
        yield required(path.child("poolName"))
    if generation := number(pool, "generation"):
        yield from in_limits(generation, path.child("generation"), at_least=0)
    else:
        yield required(path.child("generation"))
    for field, least in _LEAST.items():
        if pool.get(field) is not None:
            yield from in_limits(pool[field], path.child(field), at_least=least)
    if pool.get("nodeName") is not None:
        yield from dns_subdomain(pool["nodeName"], path.child("nodeName"))
    if len(text(pool, "validationError").encode()) > MAX_VALIDATION_ERROR:
        yield too_long(path.child("validationError"), MAX_VALIDATION_ERROR)


def _end(obj: Json) -> Json:
    """Return the terminal condition, or an empty object."""
    conditions = items(obj, "status", "conditions")
    ends = (item for item in conditions if item["type"] in ("Complete", "Failed") and item["status"] == "True")
    return next(ends, {})


def _total(name: str, field: str) -> Column:
    def cell(obj: Json) -> str:
        if obj.get("status") is None or text(_end(obj), "type") == "Failed":
            return "-"
        return str(sum(number(pool, field) for pool in items(obj, "status", "pools")))

    return Column(name, cell, description=f"{_HOW_MANY[name]} devices across all pools.")


def _errors(obj: Json) -> str:
    if obj.get("status") is None or text(_end(obj), "type") == "Failed":
        return "-"
    return str(sum("validationError" in pool for pool in items(obj, "status", "pools")))


def _status(obj: Json) -> str:
    end, pools, shown = text(_end(obj), "type"), number(obj, "status", "poolCount"), len(items(obj, "status", "pools"))
    return f"Complete ({shown}/{pools} pools)" if end == "Complete" and pools > shown else end or "Pending"


def _completed(obj: Json) -> str:
    end = _end(obj)
    return age(text(end, "lastTransitionTime")) if text(end, "type") == "Complete" else "<none>"


POOL_STATUS_COLUMNS = (
    NAME,
    Column("Driver", lambda obj: text(obj, "spec", "driver"), description="The driver to query pools for."),
    _total("Total", "totalDevices"),
    _total("Available", "availableDevices"),
    _total("Allocated", "allocatedDevices"),
    _total("Unavailable", "unavailableDevices"),
    Column("Errors", _errors, description="Number of pools with validation errors."),
    Column(
        "Pools",
        lambda obj: number(part(obj, "status"), "poolCount"),
        type="integer",
        description="Total number of matching pools.",
    ),
    Column("Status", _status, description="Processing status."),
    Column("Completed", _completed, description="Time since the observation completed."),
)


RESOURCE_POOL_STATUS_REQUESTS = Resource(
    names=Names("resourcepoolstatusrequests", kind="ResourcePoolStatusRequest"),
    strategy=ResourcePoolStatusRequestStrategy(),
    status=ResourcePoolStatusRequestStatusStrategy(),
    group=GROUP,
    version="v1alpha3",
    status_has_tables=False,
    returns_deleted_object=True,
    columns=POOL_STATUS_COLUMNS,
)
