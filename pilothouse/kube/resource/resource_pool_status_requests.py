"""ResourcePoolStatusRequests: a question about a driver's pools, which is answered once."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.names import validate_long_name_caseless, validate_resource_pool_name
from pilothouse.kube.resource.pool_status import POOL_STATUS_COLUMNS, printed_status, validate_pool_status
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.fields import in_limits
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


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
