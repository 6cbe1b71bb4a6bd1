"""The APIService strategy: defaults, writable fields, validation, and the resource declaration."""

from __future__ import annotations

import base64
from collections.abc import Callable
from copy import deepcopy
from typing import ClassVar

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
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain, is_valid_path_segment_name
from pilothouse.machinery.validation.object_meta import validate_object_meta, validate_object_meta_update
from pilothouse.machinery.validation.pattern_format import is_valid_port_num

AVAILABLE = "Available"

LOCAL_AVAILABLE = Condition(AVAILABLE, "True", "Local", "Local APIServices are always available")
"""Condition of every APIService without a service."""

GROUP_VERSION = GroupVersion("apiregistration.k8s.io", "v1")
_DEFAULT_PORT = 443
_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences")
_SPEC = root("spec")
_CONDITION_STATUSES = ("True", "False", "Unknown")


def shown_availability(api_service: Json) -> str:
    """Return the Available column of a table: the status, with the reason unless True."""
    condition = find_condition(api_service, AVAILABLE)
    if condition is None:
        return "Unknown"
    status: str = condition["status"]
    reason = condition.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status


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


def validate_api_service(api_service: Json) -> Errors:
    spec = api_service["spec"]
    yield from validate_object_meta(metadata(api_service), namespaced=False, name_rule=_name_rule(spec))
    group, version = spec.get("group") or "", spec.get("version") or ""
    if not group and version != "v1":
        yield required(_SPEC.child("group"), "only v1 may have an empty group and it better be legacy kube")
    if group:
        for problem in is_dns1123_subdomain(group):
            yield invalid(_SPEC.child("group"), group, problem)
    for problem in is_dns1035_label(version):
        yield invalid(_SPEC.child("version"), version, problem)
    yield from _in_range(spec["groupPriorityMinimum"], 20000, _SPEC.child("groupPriorityMinimum"))
    yield from _in_range(spec["versionPriority"], 1000, _SPEC.child("versionPriority"))
    if spec.get("service") is None:
        if bundle := spec.get("caBundle"):
            size = f"{len(base64.b64decode(bundle))} bytes"
            yield invalid(_SPEC.child("caBundle"), size, "local APIServices may not have a caBundle")
        if spec.get("insecureSkipTLSVerify"):
            message = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid(_SPEC.child("insecureSkipTLSVerify"), True, message)
    else:
        service, path = spec["service"], _SPEC.child("service")
        for name in ("namespace", "name"):
            if not service.get(name):
                yield required(path.child(name))
        port = service.get("port") or 0
        if problems := is_valid_port_num(port):
            yield invalid(path.child("port"), port, f"port is not valid: {', '.join(problems)}")
        if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
            yield invalid(_SPEC.child("insecureSkipTLSVerify"), True, "may not be true if caBundle is present")


def validate_api_service_update(api_service: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(api_service), metadata(old))
    yield from validate_api_service(api_service)


def validate_status_update(api_service: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(api_service), metadata(old))
    for position, condition in enumerate(api_service["status"].get("conditions") or ()):
        if condition["status"] not in _CONDITION_STATUSES:
            path = root("status", "conditions").index(position).child("status")
            yield not_supported(path, condition["status"], _CONDITION_STATUSES)


def _name_rule(spec: Json) -> Callable[[str, bool], list[str]]:
    expected = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

    def rule(name: str, prefix: bool) -> list[str]:
        if problems := is_valid_path_segment_name(name):
            return problems
        return [] if name == expected else [f'must be `spec.version+"."+spec.group`: {quote(expected)}']

    return rule


def _in_range(value: int, limit: int, path: Path) -> Errors:
    """Check 0 < value <= limit. The limit is allowed, although upstream's message says "less than"."""
    if not 0 < value <= limit:
        yield invalid(path, value, f"must be positive and less than {limit}")
