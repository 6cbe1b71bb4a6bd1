"""PriorityClasses, including the two system classes with fixed values."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.served import tracked_access
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import required_one_of
from pilothouse.machinery.field import Errors, forbidden, root
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.validation.immutable import validate_immutable_field

GROUP = "scheduling.k8s.io"
SYSTEM_PREFIX = "system-"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
    "but can be moved to another node if necessary.",
}
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(KubeStrategy):
    namespaced = False

    def default(self, obj: Json) -> None:
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def prepare_for_create(self, obj: Json) -> None:
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        if name_of(obj).startswith(SYSTEM_PREFIX):
            yield from _validate_system_class(obj)
        elif (obj.get("value") or 0) > HIGHEST_USER_PRIORITY:
            reason = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            yield forbidden(root("value"), reason)
        yield from required_one_of(obj.get("preemptionPolicy") or "", root("preemptionPolicy"), _POLICIES)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if obj.get("value") != old.get("value"):
            yield forbidden(root("value"), "may not be changed in an update.")
        policy = root("preemptionPolicy")
        yield from validate_immutable_field(obj.get("preemptionPolicy"), old.get("preemptionPolicy"), policy)


def _validate_system_class(obj: Json) -> Errors:
    name = name_of(obj)
    value = obj.get("value") or 0
    is_default = bool(obj.get("globalDefault"))
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        problem = f"{name} is not a known system priority class"
    elif value != expected:
        problem = f"value of {name} PriorityClass must be {expected}"
    else:
        problem = f"globalDefault of {name} PriorityClass must be false" if is_default else ""
    if problem:
        reason = (
            f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
        )
        yield forbidden(root("metadata", "name"), reason)


_PRIORITY_CLASS = "io.k8s.api.scheduling.v1.PriorityClass"

PRIORITY_CLASSES = Resource(
    names=Names("priorityclasses", kind="PriorityClass", short=["pc"]),
    strategy=PriorityClassStrategy(),
    group=GROUP,
    columns=[
        NAME,
        Column("Value", lambda obj: obj.get("value") or 0, type="integer", documented=(_PRIORITY_CLASS, "value")),
        Column(
            "Global-Default",
            lambda obj: bool(obj.get("globalDefault")),
            type="boolean",
            documented=(_PRIORITY_CLASS, "globalDefault"),
        ),
        AGE,
        Column(
            "PreemptionPolicy",
            lambda obj: obj.get("preemptionPolicy") or "",
            documented=(_PRIORITY_CLASS, "preemptionPolicy"),
        ),
    ],
)


class SystemPriorityClasses:
    """Creates the system priority classes at start."""

    def __init__(self, registry: RegistryStore) -> None:
        self._classes = tracked_access(registry)

    async def start(self, context: HookContext) -> None:
        for name, value in SYSTEM_CLASSES.items():
            await self._classes.ensure(
                {
                    "kind": "PriorityClass",
                    "apiVersion": PRIORITY_CLASSES.kind.api_version,
                    "metadata": {"name": name},
                    "value": value,
                    "description": _DESCRIPTIONS[name],
                }
            )
