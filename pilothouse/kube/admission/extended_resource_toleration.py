"""ExtendedResourceToleration: a pod that asks for an extended resource tolerates the taint of nodes that have it."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.kube.validation.resource_names import is_extended
from pilothouse.machinery.objects import Json


class ExtendedResourceToleration:
    name = "ExtendedResourceToleration"

    def handles(self, operation: Operation) -> bool:
        return operation in (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        for resource in sorted(_extended_resources(spec or {})):
            _tolerate(spec or {}, {"key": resource, "operator": "Exists", "effect": "NoSchedule"})


def _extended_resources(spec: Json) -> set[str]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = ((container.get("resources") or {}).get("requests") or {} for container in containers)
    return {name for requests in asked for name in requests if is_extended(name)}


def _tolerate(spec: Json, wanted: Json) -> None:
    """A toleration that says the same about the same taint stays in its place."""
    given = list(spec.get("tolerations") or ())
    same = ("key", "operator", "value", "effect")
    for index, toleration in enumerate(given):
        if all(toleration.get(field, "") == wanted.get(field, "") for field in same):
            given[index] = wanted
            break
    else:
        given.append(wanted)
    spec["tolerations"] = given
