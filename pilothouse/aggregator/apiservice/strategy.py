"""The APIService strategy: defaults, writable fields, and the resource declaration."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

from pilothouse.aggregator.apiservice.validation import (
    validate_api_service,
    validate_api_service_update,
    validate_status_update,
)
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.endpoints.typed_resource import served_with_status
from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.storage.interface import Store
from pilothouse.kinds.conditions import Condition, find_condition, set_condition
from pilothouse.machinery.codec.scheme import AGGREGATOR
from pilothouse.machinery.field import Errors
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, metadata

AVAILABLE = "Available"

LOCAL_AVAILABLE = Condition(AVAILABLE, "True", "Local", "Local APIServices are always available")
"""Condition of every APIService without a service."""


def shown_availability(api_service: Json) -> str:
    """Return the Available column of a table: the status, with the reason unless True."""
    condition = find_condition(api_service, AVAILABLE)
    if condition is None:
        return "Unknown"
    status: str = condition["status"]
    reason = condition.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status


GROUP_VERSION = GroupVersion("apiregistration.k8s.io", "v1")

_DEFAULT_PORT = 443
_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences")


class APIServiceStrategy(Strategy):
    namespaced = False
    allow_unconditional_update = False
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def default(self, obj: Json) -> None:
        service = obj["spec"].get("service")
        if service is not None and service.get("port") is None:
            service["port"] = _DEFAULT_PORT

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {}
        if obj["spec"].get("service") is None:
            set_condition(obj, LOCAL_AVAILABLE)

    def validate(self, obj: Json) -> Errors:
        yield from validate_api_service(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        obj["status"] = deepcopy(old["status"])

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_api_service_update(obj, old)


class APIServiceStatusStrategy(APIServiceStrategy):
    reset_fields = ("spec", "metadata")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        carry_over(metadata(obj), metadata(old), *_KEPT_BY_STATUS)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_status_update(obj, old)


def _shown_service(api_service: Json) -> str:
    service = api_service["spec"].get("service")
    return "Local" if service is None else f"{service.get('namespace') or ''}/{service.get('name') or ''}"


API_SERVICES = Resource(
    names=Names("apiservices", kind="APIService", categories=["api-extensions"]),
    strategy=APIServiceStrategy(),
    group=GROUP_VERSION.group,
    version=GROUP_VERSION.version,
    storage_path="apiregistration.k8s.io/apiservices",
    status_has_tables=False,
    repeats_columns=True,
    columns=[
        NAME,
        Column("Service", _shown_service, description="The reference to the service that hosts this API endpoint."),
        Column("Available", shown_availability, description="Whether this service is available."),
        AGE,
    ],
)


_DECODER = TypedDecoder(API_SERVICES.kind, AGGREGATOR)


class APIServiceStore(RegistryStore):
    def __init__(self, store: Store, *, root: str) -> None:
        super().__init__(API_SERVICES, store, root=root, empty=_DECODER.empty_content)

    def api_group(self) -> APIGroup:
        """Return the API group with the resource and its status subresource."""
        resources = served_with_status(self, APIServiceStatusStrategy(), _DECODER)
        return APIGroup(GROUP_VERSION.group, [APIVersion(GROUP_VERSION, resources)])
