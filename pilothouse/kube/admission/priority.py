"""Priority: resolves the priority class of a pod, and allows one default class."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.kube.admission.plugin_parts import ObjectLookup
from pilothouse.kube.admission.pod_groups import POD_GROUPS
from pilothouse.kube.admission.pods import PODS, spec_of_written_pod
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of

_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
_NO_CLASS: Json = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
_KEPT = ("priority", "preemptionPolicy")


class PriorityClasses(Protocol):
    async def get(self, name: str) -> Json | None: ...

    async def default(self) -> Json | None:
        """Return the default class, or None. Several defaults: the lowest value wins."""


class Priority(Handler):
    name = "Priority"
    resources = (PODS, POD_GROUPS, _CLASSES)
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, classes: PriorityClasses) -> None:
        self._classes = classes

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource == POD_GROUPS:
            await self._admit_group(attributes)
            return
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        if attributes.operation is Operation.CREATE:
            chosen = await self._class_of(attributes, spec)
            requested, value = spec.get("priority"), chosen.get("value") or 0
            if requested is not None and requested != value:
                reason = (
                    f"the integer value of priority ({requested}) must not be provided in pod spec; "
                    f"priority admission controller computed {value} from the given PriorityClass name"
                )
                raise refused(attributes, reason)
            spec["priority"] = value
            policy = chosen.get("preemptionPolicy")
            if policy is not None:
                requested = spec.get("preemptionPolicy")
                if requested is not None and requested != policy:
                    reason = (
                        f"the string value of PreemptionPolicy ({requested}) must not be provided in pod spec; "
                        f"priority admission controller computed {policy} from the given PriorityClass name"
                    )
                    raise refused(attributes, reason)
                spec["preemptionPolicy"] = policy
        elif attributes.old is not None:
            before = attributes.old.get("spec") or {}
            for name in _KEPT:
                if spec.get(name) is None and before.get(name) is not None:
                    spec[name] = before[name]

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _CLASSES or attributes.subresource:
            return
        if attributes.obj is None or not attributes.obj.get("globalDefault"):
            return
        current = await self._classes.default()
        if current is None:
            return
        if attributes.operation is Operation.CREATE or name_of(current) != name_of(attributes.obj):
            reason = f"PriorityClass {name_of(current)} is already marked as default. Only one default can exist"
            raise refused(attributes, reason)

    async def _admit_group(self, attributes: Attributes) -> None:
        if attributes.subresource or attributes.operation is not Operation.CREATE or attributes.obj is None:
            return
        if not enabled("WorkloadAwarePreemption"):
            return
        spec = attributes.obj["spec"]
        requested, value = spec.get("priority"), (await self._class_of(attributes, spec)).get("value") or 0
        if requested is not None and requested != value:
            reason = (
                f"priority set in the pod group ({requested}) must match the priority computed ({value}) "
                "based on the priority class set in the spec"
            )
            raise refused(attributes, reason)
        spec["priority"] = value

    async def _class_of(self, attributes: Attributes, spec: Json) -> Json:
        name = spec.get("priorityClassName")
        if name:
            existing = await self._classes.get(name)
            if existing is None:
                raise refused(attributes, f"no PriorityClass with name {name} was found")
            return existing
        default = await self._classes.default()
        if default is None:
            return _NO_CLASS
        spec["priorityClassName"] = name_of(default)
        return default


class StoredPriorityClasses:
    """Priority classes from the watch cache. The default class is cached until the classes change, as every new pod
    reads it.
    """

    _at: Revision | None  # of the watch cache when `_default` was found

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry
        self._at = None
        self._default: Json | None = None

    async def get(self, name: str) -> Json | None:
        return await ObjectLookup(self._registry).get(name)

    async def default(self) -> Json | None:
        if self._at is None or self._at != self._registry.known_revision:
            with map_storage_errors(self._registry.resource.group_resource):
                page = await self._registry.list_known()
            classes = (stored.parse() for stored in page.objects)
            defaults = (item for item in classes if item.get("globalDefault"))
            self._default = min(defaults, key=lambda item: item.get("value") or 0, default=None)
            self._at = page.revision
        return self._default
