"""NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from ipaddress import IPv4Network, IPv6Network

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import GenerationStrategy, KubeStrategy
from pilothouse.kube.validation.addresses import legacy_cidr, warnings_for_cidr
from pilothouse.kube.validation.fields import follow, port_num
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import (
    NOWHERE,
    Errors,
    Path,
    declared,
    forbidden,
    invalid,
    not_supported,
    required,
    root,
)
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import format_label_selector
from pilothouse.machinery.validation.addresses import parse_cidr_sloppy
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector
from pilothouse.machinery.validation.names import is_valid_port_name

_PROTOCOLS = ("TCP", "UDP", "SCTP")

_POLICY_TYPES = ("Ingress", "Egress")


@dataclass(frozen=True, slots=True)
class _IPBlock:
    block: Json
    path: Path

    @property
    def cidrs(self) -> Iterator[tuple[str, Path]]:
        yield self.block.get("cidr") or "", self.path.child("cidr")
        for position, cidr in enumerate(self.block.get("except") or ()):
            yield cidr, self.path.child("except").index(position)


class NetworkPolicyStrategy(GenerationStrategy, KubeStrategy):
    repeats_warnings_on_update = True

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return bool(obj["spec"] != old["spec"])

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from _validate_spec(obj["spec"], PolicyRules())

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        spec = old["spec"]
        broken = any(validate_label_selector(spec.get("podSelector"), Path()))
        stored_cidrs = frozenset(cidr for block in _ip_blocks(spec, NOWHERE) for cidr, _ in block.cidrs)
        yield from _validate_spec(
            obj["spec"], PolicyRules(LabelSelectorRules(allow_invalid_values=broken), stored_cidrs)
        )

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if any(_cidr_warnings(obj["spec"], NOWHERE)):
            yield from _cidr_warnings(obj["spec"], root("spec"))


def _validate_spec(spec: Json, rules: PolicyRules) -> Errors:
    if any(validate_spec(spec, NOWHERE, rules)):
        yield from validate_spec(spec, root("spec"), rules)


def _cidr_warnings(spec: Json, path: Path) -> Iterator[str]:
    for block in _ip_blocks(spec, path):
        for cidr, at in block.cidrs:
            yield from warnings_for_cidr(cidr, at)


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


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """`known_cidrs`: notations of the stored policy."""

    selectors: LabelSelectorRules = field(default_factory=LabelSelectorRules)
    known_cidrs: frozenset[str] = frozenset()


def validate_spec(spec: Json, path: Path, rules: PolicyRules) -> Errors:
    yield from validate_label_selector(spec.get("podSelector"), path.child("podSelector"), rules.selectors)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(direction) or ()):
            yield from _validate_rule(rule, path.child(direction).index(position), peers=peers, rules=rules)
    types = spec.get("policyTypes") or []
    policy_types_path = path.child("policyTypes")
    if len(types) > len(_POLICY_TYPES):
        yield invalid(policy_types_path, types, "may not specify more than two policyTypes")
    else:
        for position, kind in enumerate(types):
            if kind not in _POLICY_TYPES:
                yield not_supported(policy_types_path.index(position), kind, _POLICY_TYPES)


def _validate_rule(rule: Json, path: Path, *, peers: str, rules: PolicyRules) -> Errors:
    for position, port in enumerate(rule.get("ports") or ()):
        port_path = path.child("ports").index(position)
        if (protocol := port.get("protocol")) is not None and protocol not in _PROTOCOLS:
            yield not_supported(port_path.child("protocol"), protocol, _PROTOCOLS)
        number, end = port.get("port"), port.get("endPort")
        if number is None:
            if end is not None:
                yield invalid(port_path.child("endPort"), end, "may not be specified when `port` is not specified")
        elif isinstance(number, str):
            if end is not None:
                yield invalid(port_path.child("endPort"), end, "may not be specified when `port` is non-numeric")
            yield from follow(is_valid_port_name, number, port_path.child("port"))
        else:
            yield from port_num(number, port_path.child("port"))
            if end is not None:
                if end < number:
                    shown = end if version_rules.holds("DeclaredValidation") else number
                    yield invalid(port_path.child("endPort"), shown, "must be greater than or equal to `port`")
                yield from port_num(end, port_path.child("endPort"))
    for position, peer in enumerate(rule.get(peers) or ()):
        yield from _validate_peer(peer, path.child(peers).index(position), rules)


def _validate_peer(peer: Json, path: Path, rules: PolicyRules) -> Errors:
    named = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in named:
        if key == "ipBlock":
            yield from _validate_block(peer[key], path.child(key), rules)
        else:
            yield from validate_label_selector(peer[key], path.child(key), rules.selectors)
    if not named:
        yield required(path, "must specify a peer")
    elif len(named) > 1 and "ipBlock" in named:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _validate_block(block: Json, path: Path, rules: PolicyRules) -> Errors:
    cidr = block.get("cidr") or ""
    if not cidr:
        yield declared(required(path.child("cidr")))
        return
    yield from legacy_cidr(path.child("cidr"), cidr, old=rules.known_cidrs)
    if parse_cidr_sloppy(cidr) is None:
        return
    for position, excepted in enumerate(block.get("except") or ()):
        at = path.child("except").index(position)
        yield from legacy_cidr(at, excepted, old=rules.known_cidrs)
        if parse_cidr_sloppy(excepted) is not None and not _is_strict_subset(excepted, cidr):
            yield invalid(at, excepted, "must be a strict subset of `cidr`")


def _is_strict_subset(inner: str, outer: str) -> bool:
    small, large = _network(inner), _network(outer)
    return type(small) is type(large) and small != large and large.supernet_of(small)  # type: ignore[arg-type]


def _network(text: str) -> IPv4Network | IPv6Network:
    cidr = parse_cidr_sloppy(text)
    assert cidr is not None
    kind = IPv4Network if cidr.address.version == 4 else IPv6Network
    return kind((int(cidr.address), cidr.bits), strict=False)
