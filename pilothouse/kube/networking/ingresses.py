"""Ingresses and their status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.networking.ingress_classes import validate_reference
from pilothouse.kube.strategy import SpecAndStatusStrategy, StatusSubresource
from pilothouse.kube.validation.addresses import legacy_ip, not_an_ip, warnings_for_ip
from pilothouse.kube.validation.fields import dns_subdomain, follow, port_num
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation import names

CLASS_ANNOTATION = "kubernetes.io/ingress.class"

_SHOWN_HOSTS = 3
_STATUS = root("status", "loadBalancer", "ingress")

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")

_FORBIDDEN_PARTS = ("//", "/./", "/../", "%2f", "%2F")

_FORBIDDEN_ENDS = ("/..", "/.")


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
    """Return the ingress points of the load balancer."""
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
    rendered = ",".join(hosts)
    return f"{rendered} + {len(rules) - _SHOWN_HOSTS} more..." if more else rendered


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


@dataclass(frozen=True, slots=True)
class IngressRules:
    """Existing faults that an update may keep."""

    invalid_secret_names: bool = False
    invalid_wildcard_rules: bool = False
    relaxed_service_names: bool = False


STRICT = IngressRules()


def rules_for_update(old: Json) -> IngressRules:
    wildcards = [rule for rule in old.get("rules") or () if "*" in (rule.get("host") or "")]
    return IngressRules(
        invalid_secret_names=any(_secret_name_errors(tls) for tls in old.get("tls") or ()),
        invalid_wildcard_rules=any(error for rule in wildcards for error in _validate_http(rule, Path(), STRICT)),
        relaxed_service_names=any(map(_is_relaxed, _service_names(old))),
    )


def _service_names(spec: Json) -> Iterator[str]:
    backends = [spec.get("defaultBackend") or {}]
    for rule in spec.get("rules") or ():
        backends += [path.get("backend") or {} for path in (rule.get("http") or {}).get("paths") or ()]
    return ((backend.get("service") or {}).get("name") or "" for backend in backends)


def _is_relaxed(name: str) -> bool:
    """Report whether the service name starts with a digit, which older rules forbade."""
    return bool(names.is_dns1035_label(name)) and not names.is_dns1123_label(name)


def validate_spec(spec: Json, path: Path, rules: IngressRules) -> Errors:
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid(path, spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _validate_backend(spec["defaultBackend"], path.child("defaultBackend"), rules)
    for position, rule in enumerate(spec.get("rules") or ()):
        rule_path = path.child("rules").index(position)
        host = rule.get("host") or ""
        if host:
            yield from not_an_ip(host, rule_path.child("host"))
            yield from _validate_host(host, rule_path.child("host"))
        if "*" not in host or not rules.invalid_wildcard_rules:
            yield from _validate_http(rule, rule_path, rules)
    for position, tls in enumerate(spec.get("tls") or ()):
        yield from _validate_tls(tls, path.child("tls").index(position), rules)
    if spec.get("ingressClassName") is not None:
        yield from dns_subdomain(spec["ingressClassName"], path.child("ingressClassName"))


def _validate_tls(tls: Json, path: Path, rules: IngressRules) -> Errors:
    for position, host in enumerate(tls.get("hosts") or ()):
        yield from _validate_host(host, path.child("hosts").index(position))
    if not rules.invalid_secret_names:
        for message in _secret_name_errors(tls):
            yield invalid(path.child("secretName"), tls["secretName"], message)


def _validate_host(host: str, path: Path) -> Errors:
    return follow(names.is_wildcard_dns1123_subdomain if "*" in host else names.is_dns1123_subdomain, host, path)


def _secret_name_errors(tls: Json) -> list[str]:
    return names.is_dns1123_subdomain(tls["secretName"]) if tls.get("secretName") else []


def _validate_http(rule: Json, path: Path, rules: IngressRules) -> Errors:
    if rule.get("http") is None:
        return
    at = path.child("http", "paths")
    paths = rule["http"].get("paths") or []
    if not paths:
        yield required(at)
    for position, each in enumerate(paths):
        yield from _validate_path(each, at.index(position), rules)


def _validate_path(entry: Json, path: Path, rules: IngressRules) -> Errors:
    kind, value = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        yield required(path.child("pathType"), "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(path.child("pathType"), kind, _PATH_TYPES)
    else:
        yield from _validate_path_value(value, path.child("path"), free=kind == "ImplementationSpecific")
    yield from _validate_backend(entry.get("backend") or {}, path.child("backend"), rules)


def _validate_path_value(value: str, path: Path, *, free: bool) -> Errors:
    if not value.startswith("/") and not (free and not value):
        yield invalid(path, value, "must be an absolute path")
    if free:
        return
    for part in _FORBIDDEN_PARTS:
        if part in value:
            yield invalid(path, value, f"must not contain '{part}'")
    for end in _FORBIDDEN_ENDS:
        if value.endswith(end):
            yield invalid(path, value, f"cannot end with '{end}'")


def _validate_backend(backend: Json, path: Path, rules: IngressRules) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from validate_reference(resource, path.child("resource"))
    elif service is not None:
        relaxed = rules.relaxed_service_names or enabled("RelaxedServiceNameValidation")
        name_rule = names.is_dns1123_label if relaxed else names.is_dns1035_label
        if not service.get("name"):
            yield required(path.child("service", "name"))
        else:
            yield from follow(name_rule, service["name"], path.child("service", "name"))
        port = service.get("port") or {}
        name, number = port.get("name") or "", port.get("number") or 0
        if name and number:
            yield invalid(path, "", "cannot set both port name & port number")
        elif name:
            yield from follow(names.is_valid_port_name, name, path.child("service", "port", "name"))
        elif number:
            yield from port_num(number, path.child("service", "port", "number"))
        else:
            yield required(path, "port name or number is required")
    else:
        yield invalid(path, "", "resource or service backend is required")
