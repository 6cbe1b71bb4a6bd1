"""Services: strategies, defaults, selectable fields and columns."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.core.services import traits
from pilothouse.kube.core.services.inference import default_on_read, drop_type_dependent_fields
from pilothouse.kube.core.services.validation import load_balancers, updates
from pilothouse.kube.core.services.validation.service import validate_service
from pilothouse.kube.core.services.warnings import service_warnings
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource
from pilothouse.kube.validation.addresses import IPV4, warnings_for_ip
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import format_labels
from pilothouse.machinery.validation.names import name_is_dns1035_label, name_is_dns_label

AFFINITY_SECONDS = 10800
"""Default timeout of session affinity: three hours."""


class ServiceStrategy(SeparateStatusStrategy):
    allow_create_on_update = True
    repeats_warnings_on_update = True

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        relaxed = enabled("RelaxedServiceNameValidation")
        return name_is_dns_label(name, prefix) if relaxed else name_is_dns1035_label(name, prefix)

    def default(self, obj: Json) -> None:
        default_service(obj)

    def complete_stored(self, obj: Json) -> None:
        self.default(obj)
        default_on_read(obj, IPV4)

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        obj["status"] = dict(old.get("status") or {})
        drop_type_dependent_fields(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_service(obj, None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from updates.validate_cluster_ips_update(obj, old)
        yield from updates.validate_ip_families_update(obj, old)
        yield from load_balancers.validate_load_balancer_class(obj, old)
        yield from updates.validate_health_check_update(obj, old)
        yield from validate_service(obj, old)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return service_warnings(obj)

    def canonicalize(self, obj: Json) -> None:
        """Drop the traffic policy of an ExternalName service, a leftover of a change of type."""
        if traits.type_of(obj) == traits.EXTERNAL_NAME:
            obj["spec"].pop("internalTrafficPolicy", None)


class ServiceStatusStrategy(StatusSubresource, ServiceStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from load_balancers.validate_load_balancer_status(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        for position, point in enumerate(load_balancers.ingress_points(obj)):
            if point.get("ip"):
                path = root("status", "loadBalancer", "ingress").index(position)
                yield from warnings_for_ip(point["ip"], path)


def default_service(service: Json) -> None:
    spec = service["spec"]
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    spec["type"] = spec.get("type") or traits.CLUSTER_IP
    for port in traits.ports_of(service):
        port["protocol"] = port.get("protocol") or "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port") or 0
    if traits.is_externally_accessible(service) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and traits.type_of(service) in (
        traits.CLUSTER_IP,
        traits.NODE_PORT,
        traits.LOAD_BALANCER,
    ):
        spec["internalTrafficPolicy"] = "Cluster"
    if traits.type_of(service) == traits.LOAD_BALANCER:
        if service["spec"].get("allocateLoadBalancerNodePorts") is None:
            service["spec"]["allocateLoadBalancerNodePorts"] = True
        for point in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if point.get("ip") and point.get("ipMode") is None:
                point["ipMode"] = "VIP"


_SPEC = "io.k8s.api.core.v1.ServiceSpec"


def _fields(obj: Json) -> Fields:
    spec = obj.get("spec") or {}
    own = {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}
    return metadata_fields(obj) | own


def _external_ip(obj: Json) -> str:
    ips = obj["spec"].get("externalIPs") or []
    match traits.type_of(obj):
        case "ClusterIP" | "NodePort":
            return ",".join(ips) or "<none>"
        case "LoadBalancer":
            points = {point.get("ip") or point.get("hostname") or "" for point in load_balancers.ingress_points(obj)}
            return ",".join([*sorted(points - {""}), *ips]) or "<pending>"
        case "ExternalName":
            return str(obj["spec"].get("externalName") or "")
    return "<unknown>"


def _port(port: Json) -> str:
    number, node = port.get("port") or 0, port.get("nodePort") or 0
    return f"{number}:{node}/{port.get('protocol')}" if node > 0 else f"{number}/{port.get('protocol')}"


SERVICES = Resource(
    names=Names("services", kind="Service", short=["svc"], categories=["all"]),
    strategy=ServiceStrategy(),
    fields=_fields,
    indexed_fields=("spec.clusterIP", "metadata.name", "spec.type"),
    storage_path="services/specs",
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("Type", traits.type_of, documented=(_SPEC, "type")),
        Column(
            "Cluster-IP",
            lambda obj: next(iter(traits.cluster_ips_of(obj)), "<none>"),
            documented=(_SPEC, "clusterIP"),
        ),
        Column("External-IP", _external_ip, documented=(_SPEC, "externalIPs")),
        Column(
            "Port(s)", lambda obj: ",".join(map(_port, traits.ports_of(obj))) or "<none>", documented=(_SPEC, "ports")
        ),
        AGE,
        Column(
            "Selector",
            lambda obj: format_labels(obj["spec"].get("selector") or {}),
            priority=1,
            documented=(_SPEC, "selector"),
        ),
    ],
)
