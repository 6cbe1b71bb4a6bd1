"""Ingresses and their status."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.networking.ingress_rules import STRICT, rules_for_update, validate_spec
from pilothouse.kube.strategy import SpecAndStatusStrategy, StatusSubresource
from pilothouse.kube.validation.addresses import legacy_ip, not_an_ip, warnings_for_ip
from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of

CLASS_ANNOTATION = "kubernetes.io/ingress.class"

_SHOWN_HOSTS = 3
_STATUS = root("status", "loadBalancer", "ingress")


class IngressStrategy(SpecAndStatusStrategy):
    kind = GroupVersionKind("networking.k8s.io", "v1", "Ingress")

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_spec(obj["spec"], root("spec"), STRICT)
        annotation, name = annotations_of(obj).get(CLASS_ANNOTATION), obj["spec"].get("ingressClassName")
        if annotation is not None and name is not None and annotation != name:
            path = root("annotations").child(CLASS_ANNOTATION)
            yield invalid(path, annotation, "must match `ingressClassName` when both are specified")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_metadata(obj)
        yield from validate_spec(obj["spec"], root("spec"), rules_for_update(old["spec"]))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if CLASS_ANNOTATION in annotations_of(obj) and obj["spec"].get("ingressClassName") is None:
            yield f"annotation {quote(CLASS_ANNOTATION)} is deprecated, please use 'spec.ingressClassName' instead"


class IngressStatusStrategy(StatusSubresource, IngressStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        known = [point["ip"] for point in _points(old) if point.get("ip")]
        for position, point in enumerate(_points(obj)):
            path, hostname = _STATUS.index(position), point.get("hostname") or ""
            if point.get("ip"):
                yield from legacy_ip(path.child("ip"), point["ip"], old=known)
            if hostname:
                yield from dns_subdomain(hostname, path.child("hostname"))
                yield from not_an_ip(hostname, path.child("hostname"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        for position, point in enumerate(_points(obj)):
            if point.get("ip"):
                yield from warnings_for_ip(point["ip"], _STATUS.index(position))


def _points(obj: Json) -> list[Json]:
    """The points at which the load balancer takes traffic in."""
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _hosts(obj: Json) -> str:
    rules = obj["spec"].get("rules") or []
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == _SHOWN_HOSTS
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    if not hosts:
        return "*"
    shown = ",".join(hosts)
    return f"{shown} + {len(rules) - _SHOWN_HOSTS} more..." if more else shown


def _class(obj: Json) -> str:
    name = obj["spec"].get("ingressClassName")
    return "<none>" if name is None else str(name)


def _address(obj: Json) -> str:
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in _points(obj)} - {""}))


INGRESSES = Resource(
    names=Names("ingresses", kind="Ingress", short=["ing"]),
    strategy=IngressStrategy(),
    status=IngressStatusStrategy(),
    group="networking.k8s.io",
    storage_path="ingress",
    columns=[
        NAME,
        Column(
            "Class",
            _class,
            description="The name of the IngressClass resource that should be used for additional configuration",
        ),
        Column("Hosts", _hosts, description="Hosts that incoming requests are matched against before the ingress rule"),
        Column("Address", _address, description="Address is a list containing ingress points for the load-balancer"),
        Column(
            "Ports",
            lambda obj: "80, 443" if obj["spec"].get("tls") else "80",
            description="Ports of TLS configurations that open",
        ),
        AGE,
    ],
)
