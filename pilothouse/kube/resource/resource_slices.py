"""ResourceSlices: devices offered by a driver."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.devices import UNSET_OR_TRUE, validate_counter_set, validate_device
from pilothouse.kube.resource.gated_fields import SLICE_SPEC_FIELDS
from pilothouse.kube.resource.names import validate_driver_name, validate_pool_name, validate_set
from pilothouse.kube.resource.taints import default_taints
from pilothouse.kube.strategy import KubeStrategy, drop_disabled
from pilothouse.kube.validation.fields import dns_subdomain, positive
from pilothouse.kube.validation.selectors import validate_node_selector
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, metadata, number, part, text
from pilothouse.machinery.validation.immutable import semantically_equal, validate_immutable_field

MAX_DEVICES = 128
MAX_ADVANCED_DEVICES = 64
MAX_COUNTER_SETS = 8

_NODE_FIELDS = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"


class ResourceSliceStrategy(KubeStrategy):
    namespaced = False
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        for device in items(obj, "spec", "devices"):
            default_taints(device)
            for mapping in part(device, "nodeAllocatableResourceMappings").values():
                mapping.setdefault("allocationMultiplier", "1")

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1
        drop_disabled(part(obj, "spec"), None, SLICE_SPEC_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if not semantically_equal(obj.get("spec"), old.get("spec")):
            begin_generation(obj, old)
        drop_disabled(part(obj, "spec"), part(old, "spec"), SLICE_SPEC_FIELDS)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(part(obj, "spec"), None, root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(part(obj, "spec"), part(old, "spec"), root("spec"))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        driver = text(obj, "spec", "driver")
        if driver != driver.lower():
            yield f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"


def _validate_spec(spec: Json, old: Json | None, path: Path) -> Errors:
    yield from validate_driver_name(text(spec, "driver"), path.child("driver"))
    yield from _validate_pool(part(spec, "pool"), path.child("pool"))
    if old is not None:
        pool = (text(spec, "pool", "name"), text(old, "pool", "name"))
        yield from validate_immutable_field(*pool, path.child("pool", "name"))
        for field in ("driver", "nodeName"):
            yield from validate_immutable_field(spec.get(field), old.get(field), path.child(field))
    yield from _validate_nodes(spec, path)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")
    devices = items(spec, "devices")
    before = {text(device, "name"): device for device in reversed(items(old or {}, "devices"))}
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def check(device: Json, where: Path) -> Errors:
        return validate_device(device, where, old=before.get(text(device, "name")), per_device_nodes=per_device)

    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    limit = MAX_ADVANCED_DEVICES if advanced else MAX_DEVICES
    yield from validate_set(devices, limit, check, path=path.child("devices"), key=lambda device: text(device, "name"))
    yield from validate_set(
        items(spec, "sharedCounters"),
        MAX_COUNTER_SETS,
        validate_counter_set,
        path=path.child("sharedCounters"),
        key=lambda counters: text(counters, "name"),
    )


def _validate_pool(pool: Json, path: Path) -> Errors:
    yield from validate_pool_name(text(pool, "name"), path.child("name"))
    yield from positive(number(pool, "resourceSliceCount"), path.child("resourceSliceCount"))
    if (generation := number(pool, "generation")) < 0:
        yield invalid(path.child("generation"), generation, "must be greater than or equal to zero")


def _validate_nodes(spec: Json, path: Path) -> Errors:
    """Require exactly one field for node access."""
    given: list[str] = []
    if (name := spec.get("nodeName")) is not None:
        if name:
            given.append("`nodeName`")
            yield from dns_subdomain(name, path.child("nodeName"))
        else:
            yield invalid(path.child("nodeName"), name, "must be either unset or set to a non-empty string")
    if (selector := spec.get("nodeSelector")) is not None:
        given.append("`nodeSelector`")
        node_selector_path = path.child("nodeSelector")
        yield from validate_node_selector(selector, node_selector_path)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            yield invalid(
                node_selector_path.child("nodeSelectorTerms"), terms, "must have exactly one node selector term"
            )
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif spec.get(field) is not None:
            yield invalid(path.child(field), False, UNSET_OR_TRUE)
    if not given:
        yield required(path, f"exactly one of {_NODE_FIELDS} is required")
    elif len(given) > 1:
        reason = f"exactly one of {_NODE_FIELDS} is required, but multiple fields are set"
        yield invalid(path, f"{{{', '.join(given)}}}", reason)


def _fields(obj: Json) -> Fields:
    spec = part(obj, "spec")
    fields = cluster_metadata_fields(obj) | {
        "spec.nodeName": text(spec, "nodeName"),
        "spec.driver": text(spec, "driver"),
    }
    if version_rules.holds("PoolsOfSlices"):
        fields["spec.pool.name"] = text(spec, "pool", "name")
    return fields


_SPEC = "io.k8s.api.resource.v1.ResourceSliceSpec"
_POOL = "io.k8s.api.resource.v1.ResourcePool"

RESOURCE_SLICES = Resource(
    names=Names("resourceslices", kind="ResourceSlice"),
    strategy=ResourceSliceStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    fields=_fields,
    indexed_fields=("spec.nodeName", "spec.driver"),
    unsupported_label=lambda kind, label: f"field label not supported for {kind}: {label}",
    columns=[
        NAME,
        Column("Node", lambda obj: text(obj, "spec", "nodeName"), documented=(_SPEC, "nodeName")),
        Column("Driver", lambda obj: text(obj, "spec", "driver"), documented=(_SPEC, "driver")),
        Column("Pool", lambda obj: text(obj, "spec", "pool", "name"), documented=(_POOL, "name")),
        AGE,
    ],
)
