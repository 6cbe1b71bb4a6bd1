"""Open TCP ports of containers, and the default response of their servers.

A container listens on the ports that its spec declares or probes, on the ports of its HTTP behaviour, and on the port
of a well-known image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.machinery.objects import Json, part
from pilothouse.nodes.behavior.model import PROBES, ContainerBehavior

_IMAGES: Final = {"nginx": 80, "httpd": 80, "caddy": 80, "whoami": 80}
"""Last part of an image name → port of its web server."""


def listens(spec: Json, port: int, behavior: ContainerBehavior) -> bool:
    """Return whether the running container accepts connections on the port."""
    return port in open_ports(spec, behavior)


def open_ports(spec: Json, behavior: ContainerBehavior) -> frozenset[int]:
    """Return the ports on which the running container accepts connections."""
    declared = (port for port in spec.get("ports") or () if (port.get("protocol") or "TCP") == "TCP")
    configured = (answer.port for answer in behavior.http or () if answer.port)
    probed = (port_of_probe(spec, action) for action in _actions(spec))
    image = (spec.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    known = () if spec.get("command") or image not in _IMAGES else (_IMAGES[image],)
    return frozenset({*(port["containerPort"] for port in declared), *configured, *probed, *known}) - {0}


def port_of_probe(spec: Json, action: Json) -> int:
    """Return the port of an httpGet, tcpSocket or grpc action; 0 for an unknown name."""
    port = action.get("port")
    if isinstance(port, int):
        return port
    named = (each["containerPort"] for each in spec.get("ports") or () if each.get("name") == port)
    return next(named, 0)


def path_of(action: Json) -> str:
    """Return the path of an httpGet action, without its query."""
    return f"/{(action.get('path') or '/').partition('?')[0].lstrip('/')}"


def is_served(spec: Json, port: int, path: str) -> bool:
    """Return whether a server without configured behaviour knows the path: the root, and the paths of its probes."""
    if path == "/":
        return True
    actions = (part(spec, f"{probe}Probe").get("httpGet") for probe in PROBES)
    return any(action and port_of_probe(spec, action) == port and path_of(action) == path for action in actions)


def _actions(spec: Json) -> Iterator[Json]:
    for probe in PROBES:
        for kind in ("httpGet", "tcpSocket", "grpc"):
            if action := part(spec, f"{probe}Probe").get(kind):
                yield action
