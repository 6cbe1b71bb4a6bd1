"""DeviceTaintRules: taints added by an administrator to selected devices."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.names import dns_label_name, validate_driver_name, validate_pool_name
from pilothouse.kube.resource.taints import default_taint, validate_taint
from pilothouse.kube.strategy import SpecAndStatusStrategy, StatusSubresource
from pilothouse.machinery.durations import age
from pilothouse.machinery.field import Errors, Path, root, too_many
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.conditions import validate_conditions

MAX_CONDITIONS = 8

_TAINT = "io.k8s.api.resource.v1.DeviceTaint"
_SELECTED_BY = {"driver": validate_driver_name, "pool": validate_pool_name, "device": dns_label_name}


class DeviceTaintRuleStrategy(SpecAndStatusStrategy):
    namespaced = False
    kind = GroupVersionKind(GROUP, "v1alpha3", "DeviceTaintRule")

    def default(self, obj: Json) -> None:
        default_taint(obj["spec"]["taint"])

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        """Set timeAdded on a changed effect, unless the client sets a time."""
        new, before = obj["spec"]["taint"], old["spec"]["taint"]
        if new.get("effect") != before.get("effect") and new.get("timeAdded") == before.get("timeAdded"):
            new["timeAdded"] = now()
        super().prepare_for_update(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(part(obj, "spec"), root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(part(obj, "spec"), root("spec"))


class DeviceTaintRuleStatusStrategy(StatusSubresource, DeviceTaintRuleStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        conditions, path = items(obj, "status", "conditions"), root("status", "conditions")
        yield from validate_conditions(conditions, path)
        if len(conditions) > MAX_CONDITIONS:
            yield too_many(path, len(conditions), MAX_CONDITIONS)


class StableDeviceTaintRuleStrategy(DeviceTaintRuleStrategy):
    """The strategy of v1, which requires a resourceVersion in updates."""

    allow_unconditional_update = False


class StableDeviceTaintRuleStatusStrategy(DeviceTaintRuleStatusStrategy):
    allow_unconditional_update = False


def _validate_spec(spec: Json, path: Path) -> Errors:
    selector = part(spec, "deviceSelector")
    for field, check in _SELECTED_BY.items():
        if selector.get(field) is not None:
            yield from check(selector[field], path.child("deviceSelector", field))
    yield from validate_taint(part(spec, "taint"), path.child("taint"))


def _of_taint(name: str, field: str) -> Column:
    return Column(name, lambda obj: text(obj, "spec", "taint", field), documented=(_TAINT, field))


def _time_added(obj: Json) -> str:
    added = text(obj, "spec", "taint", "timeAdded")
    return age(added) if added else ""


DEVICE_TAINT_RULES = Resource(
    names=Names("devicetaintrules", kind="DeviceTaintRule"),
    strategy=DeviceTaintRuleStrategy(),
    status=DeviceTaintRuleStatusStrategy(),
    group=GROUP,
    version="v1alpha3",
    status_has_tables=False,
    returns_deleted_object=True,
    columns=[
        NAME,
        _of_taint("Key", "key"),
        _of_taint("Value", "value"),
        _of_taint("Effect", "effect"),
        Column("TimeAdded", _time_added, documented=(_TAINT, "timeAdded")),
        AGE,
    ],
)

STABLE_DEVICE_TAINT_RULES = replace(
    DEVICE_TAINT_RULES,
    strategy=StableDeviceTaintRuleStrategy(),
    status=StableDeviceTaintRuleStatusStrategy(),
    returns_deleted_object=False,
)
"""The same objects as v1 serves them."""
