"""Defaults of containers. The default pull policy depends on the image tag."""

from __future__ import annotations

import re

from pilothouse.kube.core.pods.defaults.resources import round_up_requirements
from pilothouse.machinery.bounded_cache import bounded_cache
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
            for field, value in _PROBE_DEFAULTS.items():
                probe.setdefault(field, value)
            _default_http_get(probe.get("httpGet"))
            if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
                grpc["service"] = ""
    if lifecycle := container.get("lifecycle"):
        for name in _HOOKS:
            if hook := lifecycle.get(name):
                _default_http_get(hook.get("httpGet"))


def pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def default_field_reference(reference: Json | None) -> None:
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def default_host_ports(containers: list[Json] | None) -> None:
    """Default hostPort to containerPort, for pods on the host network."""
    for container in containers or ():
        for port in container.get("ports") or ():
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]


def _default_http_get(action: Json | None) -> None:
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_MAX_NAME_LENGTH = 255

_LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_PATH}(?:/{_PATH})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<algorithm>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):(?P<hex>[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_LOWER_HEX = re.compile("[a-f0-9]+")


@bounded_cache(entries=4096, key_bytes=256)
def image_tag(image: str) -> str:
    """Return the tag, `latest` by default. A reference by digest alone and an invalid reference have an empty tag."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    # The default registry is Docker Hub.
    domain, slash, _ = image.partition("/")
    has_domain = "." in domain or ":" in domain or domain == "localhost" or domain.lower() != domain
    match = _REFERENCE.fullmatch(image if slash and has_domain else f"docker.io/{image}")
    if match is None or len(match["name"]) > _MAX_NAME_LENGTH or not _is_valid_digest(match["algorithm"], match["hex"]):
        return ""
    return match["tag"] or ("" if match["hex"] else "latest")


def _is_valid_digest(algorithm: str | None, digits: str | None) -> bool:
    if algorithm is None or digits is None:
        return True
    return len(digits) == _DIGEST_LENGTHS.get(algorithm) and _LOWER_HEX.fullmatch(digits) is not None
