"""Environment variables of services: NAME_SERVICE_HOST, NAME_SERVICE_PORT, and the links of Docker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pilothouse.machinery.objects import Json, items, name_of, namespace_of, text

MASTER_SERVICE: Final = "default/kubernetes"
"""Key of the API server's service."""
_NO_ADDRESS: Final = ("", "None")


def linked_services(services: Iterable[Json], pod: Json) -> Iterator[Json]:
    """Yield the services whose variables the pod gets: the API server's, and with enableServiceLinks all services of
    the pod's namespace. Services without a cluster IP are skipped."""
    links = (pod.get("spec") or {}).get("enableServiceLinks")
    for service in services:
        if text(service, "spec", "clusterIP") in _NO_ADDRESS or not items(service, "spec", "ports"):
            continue
        if _is_master(service) or (links is not False and namespace_of(service) == namespace_of(pod)):
            yield service


def _is_master(service: Json) -> bool:
    return f"{namespace_of(service)}/{name_of(service)}" == MASTER_SERVICE


def variables_of(service: Json) -> Iterator[tuple[str, str]]:
    """Yield names and values."""
    address, ports = text(service, "spec", "clusterIP"), items(service, "spec", "ports")
    prefix = _variable(name_of(service))
    yield f"{prefix}_SERVICE_HOST", address
    yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_variable(port['name'])}", str(port["port"])
    host = f"[{address}]" if ":" in address else address
    for place, port in enumerate(ports):
        protocol, number = port.get("protocol") or "TCP", port["port"]
        url = f"{protocol.lower()}://{host}:{number}"
        if not place:
            yield f"{prefix}_PORT", url
        link = f"{prefix}_PORT_{number}_{protocol.upper()}"
        yield link, url
        yield f"{link}_PROTO", protocol.lower()
        yield f"{link}_PORT", str(number)
        yield f"{link}_ADDR", address


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()
