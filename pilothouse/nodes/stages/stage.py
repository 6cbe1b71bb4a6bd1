"""A parsed stage (selector, delay and action), and the CustomResourceDefinition of kwok's Stage."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, part
from pilothouse.nodes.stages.pipeline import Functions, InvalidStage
from pilothouse.nodes.stages.queries import Query, compile_query
from pilothouse.nodes.stages.template import compile_template

STAGES = GroupVersionResource("kwok.x-k8s.io", "v1alpha1", "stages")
_PATCH_TYPES = ("json", "merge", "strategic")

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{STAGES.resource}.{STAGES.group}"},
    "spec": {
        "group": STAGES.group,
        "scope": "Cluster",
        "names": {"plural": STAGES.resource, "singular": "stage", "kind": "Stage", "listKind": "StageList"},
        "versions": [
            {
                "name": STAGES.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "Stage says what becomes of simulated pods or nodes, as kwok has it.",
                        "required": ["spec"],
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class StagePatch:
    template: Callable[[Any], str]
    root: str
    """Field that the template renders; empty for the whole object."""
    subresource: str
    type: str

    def body(self, obj: Json) -> Any:
        """Render the patch. Raises InvalidStage."""
        try:
            filled = parse_yaml(self.template(obj).encode()).value
        except ValueError as error:
            raise InvalidStage(f"a template gives no YAML: {error}") from None
        return {self.root: filled} if self.root else filled


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    kind: str
    """Pod or Node."""
    labels: Json
    annotations: Json
    requirements: tuple[tuple[Query, str, frozenset[str]], ...]
    weight: int
    weight_from: Query | None
    delay: float | None
    delay_from: Query | None
    jitter: float | None
    jitter_from: Query | None
    event: Json | None
    finalizers: Json | None
    delete: bool
    patches: tuple[StagePatch, ...]

    def matches(self, obj: Json) -> bool:
        labels, annotations = labels_of(obj), annotations_of(obj)
        if any(labels.get(name) != value for name, value in self.labels.items()):
            return False
        if any(annotations.get(name) != value for name, value in self.annotations.items()):
            return False
        return all(_holds(query(obj), operator, values) for query, operator, values in self.requirements)

    def weight_for(self, obj: Json) -> int:
        weights = self.weight_from(obj) if self.weight_from else []
        return int(weights[0]) if weights and str(weights[0]).isdigit() else self.weight

    def wait_for(self, obj: Json, now: float, chance: random.Random) -> float:
        """Return the delay in seconds, with jitter."""
        delay = _seconds(self.delay_from, obj, now, self.delay) or 0.0
        jitter = _seconds(self.jitter_from, obj, now, self.jitter)
        if jitter is None:
            return max(delay, 0.0)
        return max(jitter if jitter < delay else chance.uniform(delay, jitter), 0.0)


def choose(stages: Sequence[Stage], obj: Json, chance: random.Random) -> Stage | None:
    """Return a matching stage, chosen by weight."""
    matching = [stage for stage in stages if stage.matches(obj)]
    weights = [stage.weight_for(obj) for stage in matching]
    if len(matching) <= 1 or not any(weights):
        return chance.choice(matching) if matching else None
    return chance.choices(matching, weights)[0]


def read_stage(obj: Json, functions: Functions) -> Stage | None:
    """Parse a stage; None for stages of other kinds. Raises InvalidStage."""
    spec: Json = obj.get("spec") or {}
    reference: Json = spec.get("resourceRef") or {}
    if reference.get("kind") not in ("Pod", "Node") or reference.get("apiGroup") not in ("v1", "", None):
        return None
    if spec.get("steps") or spec.get("selector") is None:
        raise InvalidStage("a stage needs a selector, and `next` instead of `steps`")
    following, delay, selector = spec.get("next") or {}, spec.get("delay") or {}, spec["selector"]
    return Stage(
        name=name_of(obj),
        kind=reference["kind"],
        labels=selector.get("matchLabels") or {},
        annotations=selector.get("matchAnnotations") or {},
        requirements=tuple(map(_requirement, selector.get("matchExpressions") or ())),
        weight=spec.get("weight") or 0,
        weight_from=_expression(spec.get("weightFrom")),
        delay=_milliseconds(delay.get("durationMilliseconds")),
        delay_from=_expression(delay.get("durationFrom")),
        jitter=_milliseconds(delay.get("jitterDurationMilliseconds")),
        jitter_from=_expression(delay.get("jitterDurationFrom")),
        event=following.get("event"),
        finalizers=following.get("finalizers"),
        delete=bool(following.get("delete")),
        patches=tuple(_patches(following, functions)),
    )


def _patches(following: Json, functions: Functions) -> list[StagePatch]:
    patches = [*(following.get("patches") or ())]
    if template := following.get("statusTemplate"):
        subresource = following.get("statusSubresource") or "status"
        patches.append({"template": template, "root": "status", "subresource": subresource})
    return [_patch(patch, functions) for patch in patches]


def _patch(given: Json, functions: Functions) -> StagePatch:
    kind = given.get("type") or "strategic"
    if kind not in _PATCH_TYPES:
        raise InvalidStage(f"patches of type {kind!r} are not supported")
    template = compile_template(given.get("template") or "", functions)
    return StagePatch(template, given.get("root") or "", given.get("subresource") or "", kind)


def _requirement(given: Json) -> tuple[Query, str, frozenset[str]]:
    if given.get("cel"):
        raise InvalidStage("selectors by CEL are not supported")
    requirement = given.get("jq") or given
    operator = requirement.get("operator") or ""
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise InvalidStage(f"operator {operator!r} is not supported")
    return compile_query(requirement.get("key") or ""), operator, frozenset(map(str, requirement.get("values") or ()))


def _expression(given: Json | None) -> Query | None:
    if not given:
        return None
    if given.get("cel"):
        raise InvalidStage("expressions in CEL are not supported")
    text = given.get("expressionFrom") or part(given, "jq").get("expression")
    return compile_query(text) if text else None


def _holds(results: list[Any], operator: str, values: frozenset[str]) -> bool:
    if operator in ("Exists", "DoesNotExist"):
        return bool(results) is (operator == "Exists")
    texts = {str(result).lower() if isinstance(result, bool) else str(result) for result in results}
    return texts.isdisjoint(values) is (operator == "NotIn")


def _milliseconds(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _seconds(query: Query | None, obj: Json, now: float, default: float | None) -> float | None:
    """Evaluate a delay: a timestamp gives the time until then; other text than a timestamp or duration gives None."""
    results = query(obj) if query else []
    if not results or not isinstance(results[0], str):
        return default
    try:
        return datetime.fromisoformat(results[0]).timestamp() - now
    except ValueError:
        pass
    try:
        return parse_duration(results[0]) / 1e9
    except DurationError:
        return default
