"""ResourceQuotas: limits on the resources of a namespace, and current usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Cell, Column
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation import quota_scopes
from pilothouse.kube.validation.resource_names import validate_resource_amount, validate_resource_name
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json, items, part, resource_version_of
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE

_LIMITED = ("cpu", "memory", "storage", "ephemeral-storage")


class ResourceQuotaStrategy(SeparateStatusStrategy):
    def default(self, obj: Json) -> None:
        round_up(part(obj, "spec").get("hard"))
        round_up(part(obj, "status").get("hard"))
        round_up(part(obj, "status").get("used"))

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(part(obj, "spec"), root("spec"))
        yield from _validate_status(part(obj, "status"), root("status"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(part(obj, "spec"), root("spec"))
        scopes = items(obj, "spec", "scopes")
        if set(scopes) != set(items(old, "spec", "scopes")):
            yield invalid(root("spec", "scopes"), part(obj, "spec").get("scopes"), FIELD_IMMUTABLE)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        hard = part(obj, "spec", "hard")
        for name in _LIMITED:
            request, limit = f"requests.{name}", f"limits.{name}"
            if request not in hard and name in ("cpu", "memory"):
                request = name
            if request in hard and limit in hard and parse_quantity(hard[request]) > parse_quantity(hard[limit]):
                yield f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"


class ResourceQuotaStatusStrategy(StatusSubresource, ResourceQuotaStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not resource_version_of(obj):
            yield required(root("resourceVersion"))
        yield from _validate_status(part(obj, "status"), root("status"))


def _validate_spec(spec: Json, path: Path) -> Errors:
    yield from _validate_amounts(part(spec, "hard"), path.child("hard"))
    yield from quota_scopes.validate_scopes(spec, path)
    yield from quota_scopes.validate_scope_selector(spec, path)


def _validate_status(status: Json, path: Path) -> Errors:
    for field in ("hard", "used"):
        yield from _validate_amounts(part(status, field), path.child(field))


def _validate_amounts(amounts: Json, path: Path) -> Errors:
    for name, amount in sorted(amounts.items()):
        yield from validate_resource_name(name, path.key(name))
        if "/" not in name and not quota_scopes.is_standard_for_quotas(name):
            yield invalid(path.key(name), name, "must be a standard resource for quota")
        yield from validate_resource_amount(name, amount, path.key(name))


def _usage(*, of_limits: bool) -> Cell:
    def cell(obj: Json) -> str:
        status = part(obj, "status")
        names = [name for name in sorted(part(status, "hard")) if name.startswith("limits.") is of_limits]
        return ", ".join(_shown(status, names))

    return cell


def _shown(status: Json, names: Sequence[str]) -> Iterable[str]:
    for name in names:
        yield f"{name}: {part(status, 'used').get(name, '0')}/{status['hard'][name]}"


RESOURCE_QUOTAS = Resource(
    names=Names("resourcequotas", kind="ResourceQuota", short=["quota"]),
    strategy=ResourceQuotaStrategy(),
    returns_deleted_object=True,
    columns=[
        NAME,
        Column(
            "Request",
            _usage(of_limits=False),
            description="Request represents a minimum amount of cpu/memory that a container may consume.",
        ),
        Column(
            "Limit",
            _usage(of_limits=True),
            description="Limits control the maximum amount of cpu/memory that a container may use "
            "independent of contention on the node.",
        ),
        AGE,
    ],
)
