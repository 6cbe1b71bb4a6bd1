"""Defaults of containers of every kind."""

from __future__ import annotations

from pilothouse.kube.core.pods.defaults.images import image_tag
from pilothouse.kube.core.pods.defaults.resources import round_up_requirements
from pilothouse.machinery.objects import Json

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HOOKS = ("postStart", "preStop")


def default_container(container: Json) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            default_field_reference(source.get("fieldRef"))
            if (file := source.get("fileKeyRef")) is not None:
                file.setdefault("optional", False)
    round_up_requirements(container.get("resources"))
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _default_probe(probe)
    if lifecycle := container.get("lifecycle"):
        _default_lifecycle(lifecycle)


def pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def default_field_reference(reference: Json | None) -> None:
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def default_host_ports(containers: list[Json] | None) -> None:
    """On the host's network a port is the host's port."""
    for container in containers or ():
        for port in container.get("ports") or ():
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]


def _default_probe(probe: Json) -> None:
    for name, value in _PROBE_DEFAULTS.items():
        probe.setdefault(name, value)
    _default_http_get(probe.get("httpGet"))
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_lifecycle(lifecycle: Json) -> None:
    for name in _HOOKS:
        if hook := lifecycle.get(name):
            _default_http_get(hook.get("httpGet"))


def _default_http_get(action: Json | None) -> None:
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")
