"""The scale subresource: an object with replicas, read and written as an autoscaling/v1 Scale.

    object → Scale → modified Scale → replicas and resourceVersion are written to the object

A write takes over the replicas, their owners and the resourceVersion. All other changes of the Scale are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pilothouse.apiserver.registry.operations import RequestContext, Result, Updated, UpdateRequest, object_of
from pilothouse.apiserver.registry.options import GetOptions, Preconditions, failed_precondition
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.machinery.apply.fieldset import Path
from pilothouse.machinery.apply.managed import REPLICAS, InvalidManagedFields, set_entries, to_parent, to_scale
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Conflict, Invalid
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.names import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Json, metadata, name_of, uid_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.names import name_is_dns_subdomain
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field, validate_object_meta

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _spec_replicas(obj: Json) -> int:
    return (obj.get("spec") or {}).get("replicas") or 0


def _status_replicas(obj: Json) -> int:
    return (obj.get("status") or {}).get("replicas") or 0


def _label_selector(obj: Json) -> str:
    return str(from_label_selector((obj.get("spec") or {}).get("selector")))


def _set_spec_replicas(obj: Json, replicas: int) -> None:
    obj.setdefault("spec", {})["replicas"] = replicas


@dataclass(frozen=True, slots=True)
class Scaling:
    """Reads and writes the fields of a kind that a Scale represents. The defaults fit kinds with a LabelSelector."""

    replicas: Callable[[Json], int] = _spec_replicas
    set_replicas: Callable[[Json, int], None] = _set_spec_replicas
    status_replicas: Callable[[Json], int] = _status_replicas
    selector: Callable[[Json], str] = _label_selector
    """Returns the pod selector as text. Raises InvalidSelector."""
    replicas_path: Path = REPLICAS
    """The path of the replicas in managedFields."""

    def scale_of(self, obj: Json) -> Json:
        """Return the Scale of an object. Raises BadRequest for an invalid selector."""
        try:
            selector = self.selector(obj)
        except InvalidSelector as error:
            raise BadRequest(str(error)) from None
        replicas, status = self.replicas(obj), {"replicas": self.status_replicas(obj)}
        return {
            "kind": SCALE.kind,
            "apiVersion": SCALE.api_version,
            "metadata": {field: metadata(obj)[field] for field in _METADATA if field in metadata(obj)},
            "spec": {"replicas": replicas} if replicas else {},
            "status": status | {"selector": selector} if selector else status,
        }


class ScaleStore:
    """Reads, updates and patches objects of a registry as Scales."""

    def __init__(self, registry: RegistryStore, scaling: Scaling) -> None:
        self._registry = registry
        self._scaling = scaling

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> Result:
        return self._scale(await self._registry.get(ctx, name, options))

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        async def rescaled(existing: Json | None) -> Json:
            assert existing is not None, "a scale is never created"
            old = self._scaling.scale_of(existing)
            set_entries(old, self._scale_entries(existing))
            scale = await update.make(old)
            return self._with_scale(ctx, existing, scale)

        async def validate(obj: Json, old: Json) -> None:
            await update.validate_update(self._scaling.scale_of(obj), self._scaling.scale_of(old))

        asked = replace(update, make=rescaled, validate_update=validate, force_allow_create=False)
        done = await self._registry.update(ctx, name, asked)
        return Updated(self._scale(done.result))

    def _with_scale(self, ctx: RequestContext, obj: Json, scale: Json) -> Json:
        if errors := list(_validate(scale)):
            raise Invalid.of(SCALE.group_kind, name_of(obj), errors)
        if reason := failed_precondition(obj, Preconditions(uid_of(scale) or None)):
            resource = GroupResource(ctx.resource.group, f"{ctx.resource.resource}/scale")
            raise Conflict.of(resource, name_of(obj), reason)
        self._scaling.set_replicas(obj, _spec_replicas(scale))
        metadata(obj)["resourceVersion"] = metadata(scale).get("resourceVersion") or ""
        set_entries(obj, self._parent_entries(obj, scale))
        return obj

    def _scale_entries(self, obj: Json) -> list[Json]:
        try:
            return to_scale(metadata(obj).get("managedFields"), self._mappings)
        except InvalidManagedFields as error:
            raise StatusError(str(error)) from None

    def _parent_entries(self, obj: Json, scale: Json) -> list[Json]:
        entries, own = metadata(obj).get("managedFields"), metadata(scale).get("managedFields")
        try:
            return to_parent(entries, own, api_version=self._api_version, mappings=self._mappings)
        except InvalidManagedFields as error:
            raise StatusError(str(error)) from None

    @property
    def _mappings(self) -> dict[str, Path]:
        return {self._api_version: self._scaling.replicas_path}

    @property
    def _api_version(self) -> str:
        return self._registry.resource.kind.api_version

    def _scale(self, result: Result) -> Json:
        return self._scaling.scale_of(object_of(result))


def _validate(scale: Json) -> Errors:
    yield from validate_object_meta(metadata(scale), namespaced=True, name_rule=name_is_dns_subdomain)
    yield from validate_nonnegative_field(_spec_replicas(scale), root("spec", "replicas"))


SCALE_COLUMNS = (
    replace(NAME, format=""),
    Column("Desired", _spec_replicas, type="integer", documented=("io.k8s.api.autoscaling.v1.ScaleSpec", "replicas")),
    Column(
        "Available", _status_replicas, type="integer", documented=("io.k8s.api.autoscaling.v1.ScaleStatus", "replicas")
    ),
    AGE,
)
