"""Validation of a network policy: ports, peers and address blocks."""

from __future__ import annotations

from dataclasses import field
from ipaddress import IPv4Network, IPv6Network

from pilothouse.kube.validation.addresses import legacy_cidr
from pilothouse.kube.validation.fields import follow
from pilothouse.kube.validation.ports import port_num
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.addresses import parse_cidr_sloppy
from pilothouse.machinery.validation.labels import LabelSelectorRules, validate_label_selector
from pilothouse.machinery.validation.names import is_valid_port_name

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """`known_cidrs` are notations that the stored policy has already."""

    selectors: LabelSelectorRules = field(default_factory=LabelSelectorRules)
    known_cidrs: frozenset[str] = frozenset()


def validate_spec(spec: Json, path: Path, rules: PolicyRules) -> Errors:
    yield from validate_label_selector(spec.get("podSelector"), path.child("podSelector"), rules.selectors)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(direction) or ()):
            yield from _validate_rule(rule, path.child(direction).index(position), peers=peers, rules=rules)
    yield from _validate_types(spec.get("policyTypes") or [], path.child("policyTypes"))


def _validate_rule(rule: Json, path: Path, *, peers: str, rules: PolicyRules) -> Errors:
    for position, port in enumerate(rule.get("ports") or ()):
        yield from _validate_port(port, path.child("ports").index(position))
    for position, peer in enumerate(rule.get(peers) or ()):
        yield from _validate_peer(peer, path.child(peers).index(position), rules)


def _validate_types(types: list[str], path: Path) -> Errors:
    if len(types) > len(_POLICY_TYPES):
        yield invalid(path, types, "may not specify more than two policyTypes")
        return
    for position, kind in enumerate(types):
        if kind not in _POLICY_TYPES:
            yield not_supported(path.index(position), kind, _POLICY_TYPES)


def _validate_port(port: Json, path: Path) -> Errors:
    if (protocol := port.get("protocol")) is not None and protocol not in _PROTOCOLS:
        yield not_supported(path.child("protocol"), protocol, _PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if number is None:
        if end is not None:
            yield invalid(path.child("endPort"), end, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        if end is not None:
            yield invalid(path.child("endPort"), end, "may not be specified when `port` is non-numeric")
        yield from follow(is_valid_port_name, number, path.child("port"))
    else:
        yield from port_num(number, path.child("port"))
        if end is not None:
            if end < number:
                yield invalid(path.child("endPort"), number, "must be greater than or equal to `port`")
            yield from port_num(end, path.child("endPort"))


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
        yield required(path.child("cidr"))
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
