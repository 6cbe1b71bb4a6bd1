"""ExtendedResourceToleration: adds tolerations for the taints of the extended resources of a pod."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.kube.validation.resource_names import is_extended
from pilothouse.machinery.objects import Json

_BYTES = 64
"""About the size of a toleration."""


class ExtendedResourceToleration(Handler):
    name = "ExtendedResourceToleration"
    operations = (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is not None and (resources := _extended_resources(spec)):
            count = len(resources) + len(spec.get("tolerations") or ())
            await offload_by_size(_BYTES * count, _tolerate, spec, sorted(resources))


def _extended_resources(spec: Json) -> set[str]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = ((container.get("resources") or {}).get("requests") or {} for container in containers)
    return {name for requests in asked for name in requests if is_extended(name)}


def _tolerate(spec: Json, resources: list[str]) -> None:
    """Add the toleration. An equal toleration keeps its position."""
    given = list(spec.get("tolerations") or ())
    places = {_subject(toleration): index for index, toleration in reversed(list(enumerate(given)))}
    for resource in resources:
        wanted = {"key": resource, "operator": "Exists", "effect": "NoSchedule"}
        index = places.get(_subject(wanted))
        if index is None:
            given.append(wanted)
        else:
            given[index] = wanted
    spec["tolerations"] = given


def _subject(toleration: Json) -> tuple[Any, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
