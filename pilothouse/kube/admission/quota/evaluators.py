"""Quota evaluators: usage of an object by resource name. Other resources are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.controllers.resourcequota.evaluator import QuotaEvaluator
from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.quantity import ZERO, Quantity

ONE = Quantity(1)


class AdmissionEvaluator(QuotaEvaluator, Protocol):
    """A quota evaluator that also checks writes."""

    def handles(self, attributes: Attributes) -> bool:
        """Report whether the write can change usage."""

    def missing(self, names: Iterable[str], obj: Json) -> str:
        """Return the fields required for the resource names and missing in the object, as a phrase."""


def count_name(resource: GroupResource) -> str:
    return f"count/{resource.resource}.{resource.group}" if resource.group else f"count/{resource.resource}"


def in_values(scope: Json, value: str | None) -> bool:
    """Match a value or its absence against a requirement of a scope selector."""
    operator, values = scope.get("operator"), items(scope, "values")
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    return (value is not None) == (operator == "Exists")


class _NumberEvaluator:
    """Counts objects regardless of their contents. No scope applies."""

    names: frozenset[str]
    """Resource names to count under."""

    def matching(self, names: Iterable[str]) -> list[str]:
        return sorted(self.names.intersection(names))

    def in_scope(self, scope: Json, obj: Json) -> bool:
        return False

    def missing(self, names: Iterable[str], obj: Json) -> str:
        return ""


class CountEvaluator(_NumberEvaluator):
    """Counts objects, for some resources also under an older name."""

    counts_only = True

    def __init__(self, resource: GroupResource) -> None:
        aliases = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}
        alias = {resource.resource} if not resource.group and resource.resource in aliases else set()
        self.names = frozenset({count_name(resource)} | alias)

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation is Operation.CREATE and not attributes.subresource

    def usage(self, obj: Json) -> ResourceList:
        return dict.fromkeys(self.names, ONE)


class ServiceEvaluator(_NumberEvaluator):
    """Counts services, their node ports and load balancers."""

    counts_only = False

    names = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in (Operation.CREATE, Operation.UPDATE) and not attributes.subresource

    def usage(self, obj: Json) -> ResourceList:
        kind = text(obj, "spec", "type")
        return {
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": ONE if kind == "LoadBalancer" else ZERO,
            "services.nodeports": Quantity(_node_ports(part(obj, "spec"), kind)),
        }


def _node_ports(spec: Json, kind: str) -> int:
    """Return the number of node ports, allocated or pending."""
    ports = items(spec, "ports")
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return sum(1 for port in ports if port.get("nodePort"))
    return len(ports) if kind in ("NodePort", "LoadBalancer") else 0
