"""RuntimeClass: sets the overhead and the scheduling constraints of the pod's runtime class."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kube.admission.plugin_parts import invalid_resource_name
from pilothouse.kube.admission.pods import PODS, spec_of_written_pod
from pilothouse.kube.admission.tolerations import merge_tolerations
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

GetRuntimeClass: TypeAlias = Callable[[str], Awaitable[Json | None]]

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClass(Handler):
    name = "RuntimeClass"
    resources = (PODS,)
    operations = (Operation.CREATE,)

    def __init__(self, get_runtime_class: GetRuntimeClass) -> None:
        self._get_runtime_class = get_runtime_class

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        chosen = None if spec is None else await self._class_of(attributes, spec)
        if spec is None or chosen is None:
            return
        overhead = chosen.get("overhead")
        if overhead is not None:
            if spec.get("overhead") and not _same_overhead(overhead, spec):
                raise refused(attributes, _OTHER_OVERHEAD)
            if overhead.get("podFixed"):
                spec["overhead"] = dict(overhead["podFixed"])
        if (scheduling := chosen.get("scheduling")) is not None:
            selector = dict(spec.get("nodeSelector") or {})
            for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
                if selector.setdefault(key, value) != value:
                    reason = (
                        f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                        f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                    )
                    raise refused(attributes, reason)
            tolerations = merge_tolerations(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
            for name, constraint in (("nodeSelector", selector), ("tolerations", tolerations)):
                if constraint:
                    spec[name] = constraint

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        chosen = await self._class_of(attributes, spec)
        overhead = (chosen or {}).get("overhead")
        if overhead is not None:
            if not _same_overhead(overhead, spec):
                raise refused(attributes, _OTHER_OVERHEAD)
        elif spec.get("overhead") is not None:
            reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise refused(attributes, reason)

    async def _class_of(self, attributes: Attributes, spec: Json) -> Json | None:
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        if reason := invalid_resource_name(name):
            raise StatusError(reason)
        existing = await self._get_runtime_class(name)
        if existing is None:
            raise refused(attributes, f"pod rejected: RuntimeClass {quote(name)} not found")
        return existing


def _same_overhead(overhead: Json, spec: Json) -> bool:
    return same_spec({"overhead": overhead.get("podFixed") or {}}, {"overhead": spec.get("overhead") or {}})
