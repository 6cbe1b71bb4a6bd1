"""NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.registry.carry_over import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.networking.network_policy_rules import PolicyRules, validate_spec
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.addresses import warnings_for_cidr
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import NOWHERE, Errors, Path, root
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.selectors.labels import format_label_selector
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector


@dataclass(frozen=True, slots=True)
class _IPBlock:
    block: Json
    path: Path

    @property
    def cidrs(self) -> Iterator[tuple[str, Path]]:
        yield self.block.get("cidr") or "", self.path.child("cidr")
        for position, cidr in enumerate(self.block.get("except") or ()):
            yield cidr, self.path.child("except").index(position)


class NetworkPolicyStrategy(KubeStrategy):
    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if obj["spec"] != old["spec"]:
            begin_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(obj["spec"], PolicyRules())

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from _validate_spec(obj["spec"], _rules_for_update(old["spec"]))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if any(_cidr_warnings(obj["spec"], NOWHERE)):
            yield from _cidr_warnings(obj["spec"], root("spec"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self.warnings_on_create(obj)


def _validate_spec(spec: Json, rules: PolicyRules) -> Errors:
    if any(validate_spec(spec, NOWHERE, rules)):
        yield from validate_spec(spec, root("spec"), rules)


def _cidr_warnings(spec: Json, path: Path) -> Iterator[str]:
    for block in _ip_blocks(spec, path):
        for cidr, at in block.cidrs:
            yield from warnings_for_cidr(cidr, at)


def _rules_for_update(old: Json) -> PolicyRules:
    """Return rules that allow the faults that the stored policy already has."""
    broken = any(validate_label_selector(old.get("podSelector"), Path()))
    known = frozenset(cidr for block in _ip_blocks(old, NOWHERE) for cidr, _ in block.cidrs)
    return PolicyRules(LabelSelectorRules(allow_invalid_values=broken), known)


def _ip_blocks(spec: Json, path: Path) -> Iterator[_IPBlock]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(spec.get(direction) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                if peer.get("ipBlock") is not None:
                    at = path.child(direction).index(i).child(peers).index(j).child("ipBlock")
                    yield _IPBlock(peer["ipBlock"], at)


NETWORK_POLICIES = Resource(
    names=Names("networkpolicies", kind="NetworkPolicy", short=["netpol"]),
    strategy=NetworkPolicyStrategy(),
    group="networking.k8s.io",
    columns=[
        NAME,
        Column(
            "Pod-Selector",
            lambda obj: format_label_selector(obj["spec"].get("podSelector") or {}),
            documented=("io.k8s.api.networking.v1.NetworkPolicySpec", "podSelector"),
        ),
        AGE,
    ],
)
