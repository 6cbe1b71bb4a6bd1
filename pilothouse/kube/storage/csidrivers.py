"""CSIDrivers: properties of a storage driver."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.storage.storageclasses import GROUP
from pilothouse.kube.strategy import KubeStrategy, drop_disabled, gated
from pilothouse.kube.validation.fields import one_of, validate_token_expiration
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import semantically_equal, validate_immutable_field

_DEFAULTS: Json = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
_REQUIRED = {
    "attachRequired": "attachedRequired",
    "podInfoOnMount": "podInfoOnMount",
    "storageCapacity": "storageCapacity",
}
"""Required fields, with upstream's spelling in errors."""
_IMMUTABLE = {"attachRequired": "attachedRequired", "volumeLifecycleModes": "volumeLifecycleModes"}
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_MIN_UPDATE_PERIOD = 10
_GATED = "preventPodSchedulingIfMissing"
_TOKENS = "serviceAccountTokenInSecrets"
_GATED_FIELDS = (
    gated("VolumeLimitScaling", _GATED),
    gated("MutableCSINodeAllocatableCount", "nodeAllocatableUpdatePeriodSeconds"),
    gated("CSIServiceAccountTokenSecrets", _TOKENS),
)
_RECOMMENDATION = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true "
    "to prevent possible logging of tokens in volume attributes"
)


class CSIDriverStrategy(KubeStrategy):
    namespaced = False
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        for field, value in _DEFAULTS.items():
            if spec.get(field) is None:
                spec[field] = value
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

        if spec.get(_GATED) is None and enabled("VolumeLimitScaling"):
            spec[_GATED] = False

    def prepare_for_create(self, obj: Json) -> None:
        drop_disabled(obj["spec"], None, _GATED_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        drop_disabled(obj["spec"], old["spec"], _GATED_FIELDS)
        if not semantically_equal(obj["spec"], old["spec"]):
            begin_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(obj["spec"], root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(obj["spec"], root("spec"))
        for field, shown in _IMMUTABLE.items():
            yield from validate_immutable_field(obj["spec"].get(field), old["spec"].get(field), root("spec", shown))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        recommends = enabled("CSIServiceAccountTokenSecrets")
        if recommends and obj["spec"].get("tokenRequests") and obj["spec"].get(_TOKENS) is None:
            yield _RECOMMENDATION

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if not semantically_equal(obj["spec"].get("tokenRequests"), old["spec"].get("tokenRequests")):
            yield from self.warnings_on_create(obj)


def _validate_spec(spec: Json, path: Path) -> Errors:
    for field, shown in _REQUIRED.items():
        if spec.get(field) is None:
            yield required(path.child(shown))
    if spec.get("fsGroupPolicy") is not None:
        yield from one_of(spec["fsGroupPolicy"], path.child("fsGroupPolicy"), _FS_GROUP_POLICIES)
    requests = items(spec, "tokenRequests")
    token_requests_path = path.child("tokenRequests")
    audiences: set[str] = set()
    for position, request in enumerate(requests):
        at, audience = token_requests_path.index(position), text(request, "audience")
        if audience in audiences:
            yield duplicate(at.child("audience"), audience)
            continue
        audiences.add(audience)
        if (seconds := request.get("expirationSeconds")) is not None:
            yield from validate_token_expiration(seconds, at.child("expirationSeconds"))
    for mode in items(spec, "volumeLifecycleModes"):
        yield from one_of(mode, path.child("volumeLifecycleModes"), _LIFECYCLE_MODES)
    if spec.get("seLinuxMount") is None:
        yield required(path.child("seLinuxMount"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _MIN_UPDATE_PERIOD:
        reason = f"must be greater than or equal to {_MIN_UPDATE_PERIOD} seconds"
        yield invalid(path.child("nodeAllocatableUpdatePeriodSeconds"), period, reason)
    in_secrets = spec.get(_TOKENS)
    if in_secrets is not None and not spec.get("tokenRequests"):
        reason = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid(path.child("serviceAccountTokenInSecrets"), in_secrets, reason)


def _audiences(obj: Json) -> str:
    requests = part(obj, "spec").get("tokenRequests")
    return "<unset>" if requests is None else ",".join(text(request, "audience") for request in requests)


_SPEC = "io.k8s.api.storage.v1.CSIDriverSpec"


def _flag_column(name: str, field: str, *, unset: bool = False) -> Column:
    def cell(obj: Json) -> bool:
        value = part(obj, "spec").get(field)
        return unset if value is None else bool(value)

    return Column(name, cell, type="boolean", documented=(_SPEC, field))


CSI_DRIVERS = Resource(
    names=Names("csidrivers", kind="CSIDriver"),
    strategy=CSIDriverStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[
        NAME,
        _flag_column("AttachRequired", "attachRequired", unset=True),
        _flag_column("PodInfoOnMount", "podInfoOnMount"),
        _flag_column("StorageCapacity", "storageCapacity"),
        Column("TokenRequests", _audiences, documented=(_SPEC, "tokenRequests")),
        _flag_column("RequiresRepublish", "requiresRepublish"),
        Column(
            "Modes",
            lambda obj: ",".join(items(obj, "spec", "volumeLifecycleModes")) or "<none>",
            documented=(_SPEC, "volumeLifecycleModes"),
        ),
        AGE,
    ],
)
