"""The rules of nodes. Whoever creates a node may set its status too, as kubelets do."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.kube.core.nodes.validation import validate_node, validate_node_update
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.addresses import warnings_for_cidr
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json, items, part


class NodeStrategy(KubeStrategy):
    namespaced = False
    reset_fields = ("status",)

    def default(self, obj: Json) -> None:
        _settle_pod_cidrs(obj["spec"])
        status = obj["status"]
        # What comes empty is nothing in the store, and defaulted when it is read from there.
        if not status.get("allocatable") and status.get("capacity") is not None:
            status["allocatable"] = dict(status["capacity"])
        round_up(status.get("capacity"))
        round_up(status.get("allocatable"))

    def prepare_for_create(self, obj: Json) -> None:
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        if part(old, "spec").get("configSource") is None:
            obj["spec"].pop("configSource", None)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_node(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate(obj)
        yield from self.validate_metadata_update(obj, old)
        yield from validate_node_update(obj, old)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return _warnings(obj)


class NodeStatusStrategy(NodeStrategy):
    reset_fields = ("spec",)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        if part(old, "status").get("config") is None:
            obj["status"].pop("config", None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_node_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def _settle_pod_cidrs(spec: Json) -> None:
    """podCIDR is the first of podCIDRs; where clients send two that differ, the older field is believed."""
    cidr, cidrs = spec.get("podCIDR"), spec.get("podCIDRs")
    if cidr and (not cidrs or cidrs[0] != cidr):
        spec["podCIDRs"] = [cidr]
    elif cidrs:
        spec["podCIDR"] = cidrs[0]


def _warnings(obj: Json) -> Iterable[str]:
    spec = part(obj, "spec")
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for position, cidr in enumerate(items(spec, "podCIDRs")):
        yield from warnings_for_cidr(cidr, root("spec", "podCIDRs").index(position))
