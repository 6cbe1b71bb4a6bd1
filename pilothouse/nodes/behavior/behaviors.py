"""Lookup of behaviours: SimulatedBehavior objects, and annotations of pods and nodes.

Annotations precede objects; objects are ordered by descending `spec.priority`, then by name. Precedence is per field:
one object can set logs and another failing probes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, namespace_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.nodes.behavior import model

logger = logging.getLogger(__name__)

SIMULATED_BEHAVIORS = GroupVersionResource("simulation.pilothouse.dev", "v1alpha1", "simulatedbehaviors")


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed SimulatedBehavior. An empty selector matches everything."""

    order: tuple[int, str]
    namespaces: frozenset[str]
    pods: Selector | None
    containers: frozenset[str]
    nodes: frozenset[str]
    node_labels: Selector | None
    container: model.ContainerBehavior | None
    node: model.NodeBehavior | None

    def concerns_node(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.nodes and name not in self.nodes:
            return False
        return self.node_labels is None or self.node_labels.matches(labels)

    def concerns_pod(self, pod: Json) -> bool:
        if self.namespaces and namespace_of(pod) not in self.namespaces:
            return False
        return self.pods is None or self.pods.matches(labels_of(pod))


def rule_of(obj: Json) -> Rule:
    """Parse a SimulatedBehavior. Raises InvalidBehavior or InvalidSelector."""
    spec = obj.get("spec") or {}
    selector = spec.get("selector") or {}
    return Rule(
        (-(spec.get("priority") or 0), name_of(obj)),
        frozenset(selector.get("namespaces") or ()),
        _selector(selector.get("podSelector")),
        frozenset(selector.get("containers") or ()),
        frozenset(selector.get("nodes") or ()),
        _selector(selector.get("nodeSelector")),
        model.container_behavior(spec["container"]) if spec.get("container") else None,
        model.node_behavior(spec["node"]) if spec.get("node") else None,
    )


class Behaviors:
    """`of_container` and `of_node` return the current behaviour; `on_change` callbacks run after a change."""

    def __init__(self, node_labels: Callable[[str], Mapping[str, str]]) -> None:
        """`node_labels` returns the labels of a node."""
        self._node_labels = node_labels
        self._rules: dict[str, Rule] = {}
        self._in_order: tuple[Rule, ...] = ()
        self.on_change: list[Callable[[], None]] = []

    def set(self, obj: Json) -> None:
        """Add or update an object; invalid objects are ignored with a warning."""
        try:
            self._rules[name_of(obj)] = rule_of(obj)
        except (model.InvalidBehavior, InvalidSelector) as error:
            logger.warning("simulatedbehavior %s is ignored: %s", name_of(obj), error)
            self._rules.pop(name_of(obj), None)
        self._changed()

    def remove(self, name: str) -> None:
        self._rules.pop(name, None)
        self._changed()

    def problem_with(self, pod: Json) -> str:
        """Return the problem with the pod's annotations; empty if valid."""
        annotations = annotations_of(pod)
        try:
            for container in ("", *(model.annotated_names(annotations))):
                model.annotated_container(annotations, container)
        except model.InvalidBehavior as error:
            return str(error)
        return ""

    def of_container(self, pod: Json, container: str) -> model.ContainerBehavior:
        behavior, annotations = model.NOTHING_SPECIAL, annotations_of(pod)
        if model.is_annotated(annotations):
            try:
                behavior = model.annotated_container(annotations, container)
            except model.InvalidBehavior as error:
                logger.debug("annotations of pod %s/%s are ignored: %s", namespace_of(pod), name_of(pod), error)
        for rule in self._rules_for(pod, container):
            behavior = model.over(behavior, rule)
        return behavior

    def of_node(self, node: Json) -> model.NodeBehavior:
        behavior, name, annotations = model.HEALTHY, name_of(node), annotations_of(node)
        if not self._in_order and not model.is_annotated(annotations):
            return behavior
        labels = labels_of(node)
        try:
            behavior = model.annotated_node(annotations)
        except model.InvalidBehavior as error:
            logger.debug("an annotation of node %s is ignored: %s", name, error)
        for rule in self._in_order:
            if rule.node is not None and rule.concerns_node(name, labels):
                behavior = model.over(behavior, rule.node)
        return behavior

    def _rules_for(self, pod: Json, container: str) -> Iterable[model.ContainerBehavior]:
        node = node_name(pod)
        labels = self._node_labels(node) if self._in_order else {}
        for rule in self._in_order:
            named = not rule.containers or container in rule.containers
            concerned = named and rule.concerns_pod(pod) and rule.concerns_node(node, labels)
            if rule.container is not None and concerned:
                yield rule.container

    def _changed(self) -> None:
        self._in_order = tuple(sorted(self._rules.values(), key=lambda rule: rule.order))
        for tell in self.on_change:
            tell()


def _selector(selector: Json | None) -> Selector | None:
    return None if selector is None else from_label_selector(selector)
