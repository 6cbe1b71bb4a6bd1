"""Admission plugins for taints and tolerations, and merging of tolerations in linear time.

DefaultTolerationSeconds: bounded tolerations for not-ready and unreachable nodes.
TaintNodesByCondition: new nodes get the not-ready taint.
ExtendedResourceToleration: adds tolerations for the taints of the extended resources of a pod.
PodTolerationRestriction: default and allowed tolerations per namespace, with cluster-wide defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

import orjson

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.kube.admission.config import DEFAULT_TOLERATION_SECONDS
from pilothouse.kube.admission.pods import PODS, GetNamespace, namespace_annotations, spec_of_written_pod
from pilothouse.kube.core.pods.qos import qos_class
from pilothouse.kube.validation.resource_names import is_extended
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items
from pilothouse.machinery.status_error import StatusError

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

_NODES = GroupResource("", "nodes")

_BYTES = 64
"""About the size of a toleration."""

_DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
"""About the size of a toleration."""
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}

_Scope: TypeAlias = tuple[str | None, str, str | None]
"""(key, effect, value). None matches every key or value; an empty effect matches every effect."""


class DefaultTolerationSeconds(Handler):
    name = "DefaultTolerationSeconds"
    resources = (PODS,)
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(
        self, *, not_ready: int = DEFAULT_TOLERATION_SECONDS, unreachable: int = DEFAULT_TOLERATION_SECONDS
    ) -> None:
        self._seconds = {NOT_READY: not_ready, UNREACHABLE: unreachable}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        existing = list(spec.get("tolerations") or ())
        for taint, seconds in self._seconds.items():
            if not any(
                ((item.get("key") or taint) == taint and (item.get("effect") or "NoExecute") == "NoExecute")
                for item in existing
            ):
                added = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
                spec["tolerations"] = [*(spec.get("tolerations") or ()), added]


class TaintNodesByCondition(Handler):
    name = "TaintNodesByCondition"
    resources = (_NODES,)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        node = attributes.obj
        if node is None or attributes.resource.group_resource != _NODES or attributes.subresource:
            return
        taints = items(node, "spec", "taints")
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            node.setdefault("spec", {})["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


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
    existing = list(spec.get("tolerations") or ())
    places = {_subject(toleration): index for index, toleration in reversed(list(enumerate(existing)))}
    for resource in resources:
        required = {"key": resource, "operator": "Exists", "effect": "NoSchedule"}
        index = places.get(_subject(required))
        if index is None:
            existing.append(required)
        else:
            existing[index] = required
    spec["tolerations"] = existing


def _subject(toleration: Json) -> tuple[Any, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))


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
            annotated = await self._annotated_tolerations(attributes.namespace, _DEFAULTS)
            extra += self._configuration.get("default") or [] if annotated is None else annotated
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
        annotated = await self._annotated_tolerations(attributes.namespace, _WHITELIST)
        allowed = self._configuration.get("whitelist") or [] if annotated is None else annotated
        given = spec["tolerations"]
        if allowed and not await offload_by_size(_BYTES * (len(given) + len(allowed)), all_covered, given, allowed):
            scope = "cluster" if annotated is None else "namespace"
            subject = "pod tolerations (possibly merged with namespace default tolerations)"
            raise StatusError(f"{subject} conflict with its {scope} whitelist")

    async def _annotated_tolerations(self, namespace: str, annotation: str) -> list[Json] | None:
        """Return the tolerations of the namespace's annotation, or None without an annotation.

        Raise NotFound, or StatusError for an invalid annotation.
        """
        text = (await namespace_annotations(namespace, self._namespace)).get(annotation)
        if not text:
            return None if text is None else []
        try:
            return list(orjson.loads(text))
        except ValueError as error:
            raise StatusError(str(error)) from None


class TolerationIndex:
    """An index of tolerations that finds covering tolerations."""

    def __init__(self, tolerations: Iterable[Json] = ()) -> None:
        self._known: set[bytes] = set()
        self._longest: dict[_Scope, float] = {}  # longest toleration seconds by scope
        for toleration in tolerations:
            self.add(toleration)

    def add(self, wide: Json) -> None:
        checkpoint()
        self._known.add(_identity(wide))
        exists = wide.get("operator") == "Exists"
        key = None if exists and not wide.get("key") else _text(wide, "key")
        scope = (key, _text(wide, "effect"), None if exists else _text(wide, "value"))
        self._longest[scope] = max(self._longest.get(scope, -inf), _seconds(wide))

    def covers(self, narrow: Json) -> bool:
        if _identity(narrow) in self._known:
            return True
        return any(
            scope in self._longest and (scope[1] != "NoExecute" or _seconds(narrow) <= self._longest[scope])
            for scope in _covering_scopes(narrow)
        )


def merge_tolerations(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    """Return both lists without covered tolerations. Of equal tolerations, the first is kept."""
    every = list({_identity(toleration): toleration for toleration in (*first, *second)}.values())
    following, rest = TolerationIndex(), []
    for toleration in reversed(every):
        if not following.covers(toleration):
            rest.append(toleration)
        following.add(toleration)
    before, merged = TolerationIndex(), []
    for toleration in reversed(rest):
        if not before.covers(toleration):
            merged.append(toleration)
            before.add(toleration)
    return merged


def all_covered(tolerations: Iterable[Json], allowed: Iterable[Json]) -> bool:
    """Report whether allowed tolerations cover all tolerations."""
    index = TolerationIndex(allowed)
    return all(index.covers(toleration) for toleration in tolerations)


def covers(wide: Json, narrow: Json) -> bool:
    """Report whether `wide` tolerates everything that `narrow` tolerates."""
    return TolerationIndex([wide]).covers(narrow)


def _covering_scopes(narrow: Json) -> Iterator[_Scope]:
    values = (None, _text(narrow, "value")) if narrow.get("operator") == "Equal" else (None,)
    for effect in {"", _text(narrow, "effect")}:
        for value in values:
            yield _text(narrow, "key"), effect, value
        yield None, effect, None


def _identity(toleration: Json) -> bytes:
    return orjson.dumps(toleration, option=orjson.OPT_SORT_KEYS)


def _text(toleration: Json, field: str) -> str:
    return str(toleration.get(field) or "")


def _seconds(toleration: Json) -> float:
    """Without a limit a taint is tolerated for ever."""
    limit = toleration.get("tolerationSeconds")
    return inf if limit is None else float(limit)
