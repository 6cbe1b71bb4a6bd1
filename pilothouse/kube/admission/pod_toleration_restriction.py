"""PodTolerationRestriction: default and allowed tolerations per namespace, with cluster-wide defaults."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.kube.admission.namespace_annotations import GetNamespace, annotations_of
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.kube.admission.tolerations import all_covered, merge_tolerations
from pilothouse.kube.core.pods.qos import qos_class
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_BYTES = 64
"""About the size of a toleration."""
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


class PodTolerationRestriction(Handler):
    name = "PodTolerationRestriction"
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, namespace: GetNamespace, configuration: Json | None = None) -> None:
        self._namespace = namespace
        self._configuration = configuration or {}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None or attributes.obj is None:
            return
        extra: list[Json] = []
        if attributes.operation is Operation.CREATE:
            said = await self._annotated_tolerations(attributes.namespace, _DEFAULTS)
            extra += self._configuration.get("default") or [] if said is None else said
        if qos_class(attributes.obj) != "BestEffort":
            extra.append(_MEMORY_PRESSURE)
        if extra:
            given = spec.get("tolerations") or []
            spec["tolerations"] = await offload_by_size(_BYTES * len(given), merge_tolerations, given, extra)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None or not spec.get("tolerations"):
            return
        said = await self._annotated_tolerations(attributes.namespace, _WHITELIST)
        allowed = self._configuration.get("whitelist") or [] if said is None else said
        given = spec["tolerations"]
        if allowed and not await offload_by_size(_BYTES * (len(given) + len(allowed)), all_covered, given, allowed):
            scope = "cluster" if said is None else "namespace"
            what = "pod tolerations (possibly merged with namespace default tolerations)"
            raise StatusError(f"{what} conflict with its {scope} whitelist")

    async def _annotated_tolerations(self, namespace: str, annotation: str) -> list[Json] | None:
        """Return the tolerations of the namespace's annotation, or None without an annotation.

        Raise NotFound, or StatusError for an invalid annotation.
        """
        text = (await annotations_of(namespace, self._namespace)).get(annotation)
        if not text:
            return None if text is None else []
        try:
            return list(orjson.loads(text))
        except ValueError as error:
            raise StatusError(str(error)) from None
