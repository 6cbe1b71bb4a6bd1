"""Services as a resource: names, selectable fields and columns."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.core.services.strategy import ServiceStrategy
from pilothouse.kube.core.services.traits import (
    cluster_ips_of,
    ports_of,
    type_of,
)
from pilothouse.kube.core.services.validation.load_balancers import ingress_points
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import format_labels

_SPEC = "io.k8s.api.core.v1.ServiceSpec"


def _fields(obj: Json) -> Fields:
    spec = obj.get("spec") or {}
    own = {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}
    return metadata_fields(obj) | own


def _external_ip(obj: Json) -> str:
    ips = obj["spec"].get("externalIPs") or []
    match type_of(obj):
        case "ClusterIP" | "NodePort":
            return ",".join(ips) or "<none>"
        case "LoadBalancer":
            points = {point.get("ip") or point.get("hostname") or "" for point in ingress_points(obj)}
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
        Column("Type", type_of, documented=(_SPEC, "type")),
        Column(
            "Cluster-IP",
            lambda obj: next(iter(cluster_ips_of(obj)), "<none>"),
            documented=(_SPEC, "clusterIP"),
        ),
        Column("External-IP", _external_ip, documented=(_SPEC, "externalIPs")),
        Column("Port(s)", lambda obj: ",".join(map(_port, ports_of(obj))) or "<none>", documented=(_SPEC, "ports")),
        AGE,
        Column(
            "Selector",
            lambda obj: format_labels(obj["spec"].get("selector") or {}),
            priority=1,
            documented=(_SPEC, "selector"),
        ),
    ],
)
