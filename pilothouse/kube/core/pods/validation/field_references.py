"""References to the pod's own fields and to its containers' resources, from variables and files."""

from __future__ import annotations

from pilothouse.kube.validation.fields import qualified_name
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.selectors.fields import label_not_supported

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")

_WITH_SUBSCRIPT = ("metadata.annotations", "metadata.labels")
_KNOWN_FIELDS = frozenset({*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = ("1m", "1")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVIDED = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-storage": "local ephemeral storage",
}


def validate_field_reference(reference: Json, allowed: tuple[str, ...], path: Path) -> Errors:
    version, field = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    if not version:
        yield required(path.child("apiVersion"))
        return
    if not field:
        yield required(path.child("fieldPath"))
        return
    problem = _problem(version, field)
    if problem:
        yield invalid(path.child("fieldPath"), field, f"error converting fieldPath: {problem}")
        return
    name, subscript = split_subscript(field)
    if subscript is not None:
        yield from qualified_name(subscript.lower() if name == "metadata.annotations" else subscript, path)
        return
    # Old clients call the node a host.
    name = "spec.nodeName" if name == "spec.host" else name
    if name not in allowed:
        yield not_supported(path.child("fieldPath"), name, allowed)


def split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is the field metadata.labels with the subscript a."""
    name, bracket, subscript = field.partition("['")
    if field.endswith("']") and bracket and name and len(field) >= len(name) + 4:
        return name, subscript[:-2]
    return field, None


def validate_resource_reference(reference: Json, path: Path, *, of_volume: bool = False) -> Errors:
    resource = reference.get("resource") or ""
    if of_volume and not reference.get("containerName"):
        yield required(path.child("containerName"))
    elif not resource:
        yield required(path.child("resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(path.child("resource"), resource, _RESOURCES)
    divisor = reference.get("divisor") or "0"
    if parse_quantity(divisor):
        yield from _validate_divisor(resource, str(parse_quantity(divisor)), path.child("divisor"))


def _problem(version: str, field: str) -> str:
    """Why a field cannot be referred to; empty when it can."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    name, subscript = split_subscript(field)
    if subscript is not None:
        return "" if name in _WITH_SUBSCRIPT else f"field label does not support subscript: {field}"
    return "" if field in _KNOWN_FIELDS or field == "spec.host" else label_not_supported(field)


def _validate_divisor(resource: str, divisor: str, path: Path) -> Errors:
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else _DIVIDED.get(resource.partition(".")[2], "")
    if kind == "cpu":
        if divisor not in _CPU_DIVISORS:
            yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif kind and divisor not in _BYTE_DIVISORS:
        values = ", ".join(_BYTE_DIVISORS)
        yield invalid(path, resource, f"only divisor's values {values} are supported with the {kind} resource")
