"""Environment variables, and references to pod fields and container resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.validation.fields import dns_label, follow, no_backsteps, qualified_name
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.selectors.fields import label_not_supported
from pilothouse.machinery.validation.names import is_config_map_key, is_relaxed_env_var_name, name_is_dns_subdomain

_TOO_MANY_SOURCES = "may not have more than one field specified at a time"


def validate_env(variables: Sequence[Json], path: Path) -> Errors:
    for position, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(path.index(position).child("name"))
        elif messages := is_relaxed_env_var_name(name):
            for message in messages:
                yield invalid(path.index(position).child("name"), name, message)
        if (source := variable.get("valueFrom")) is not None:
            has_value = bool(variable.get("value"))
            value_from_path = path.index(position).child("valueFrom")
            count = 0
            for name, validate in _SOURCES.items():
                if (reference := source.get(name)) is not None:
                    count += 1
                    yield from validate(reference, value_from_path.child(name))
            if not count:
                files = enabled("EnvFiles")
                *names, last = (f"`{name}`" for name in _SOURCES if files or name != "fileKeyRef")
                yield invalid(value_from_path, "", f"must specify one of: {', '.join(names)} or {last}")
            elif has_value:
                yield invalid(value_from_path, "", "may not be specified when `value` is not empty")
            elif count > 1:
                yield invalid(value_from_path, "", _TOO_MANY_SOURCES)


def _validate_key(reference: Json, path: Path) -> Errors:
    yield from follow(name_is_dns_subdomain, reference.get("name") or "", path.child("name"))
    if not reference.get("key"):
        yield required(path.child("key"))
    else:
        yield from follow(is_config_map_key, reference["key"], path.child("key"))


def _validate_file_key(reference: Json, path: Path) -> Errors:
    if not reference.get("key"):
        yield required(path.child("key"))
    else:
        yield from follow(is_relaxed_env_var_name, reference["key"], path.child("key"))
    if not reference.get("volumeName"):
        yield required(path.child("volumeName"))
    else:
        yield from dns_label(reference["volumeName"], path.child("volumeName"))
    if not reference.get("path"):
        yield required(path.child("path"))
    else:
        yield from no_backsteps(reference["path"], path.child("path"))


def validate_env_from(sources: Sequence[Json], path: Path) -> Errors:
    for position, source in enumerate(sources):
        at, count = path.index(position), 0
        if source.get("prefix"):
            yield from follow(is_relaxed_env_var_name, source["prefix"], at.child("prefix"))
        for name in ("configMapRef", "secretRef"):
            if (reference := source.get(name)) is not None:
                count += 1
                name_path = at.child(name, "name")
                object_name = reference.get("name")
                if not object_name:
                    yield required(name_path)
                else:
                    for message in name_is_dns_subdomain(object_name, True):
                        yield invalid(name_path, object_name, message)
        if not count:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            yield invalid(path, "", _TOO_MANY_SOURCES)


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
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    else:
        name, subscript = split_subscript(field)
        if subscript is not None:
            problem = "" if name in _WITH_SUBSCRIPT else f"field label does not support subscript: {field}"
        else:
            problem = "" if field in _KNOWN_FIELDS or field == "spec.host" else label_not_supported(field)
    if problem:
        yield invalid(path.child("fieldPath"), field, f"error converting fieldPath: {problem}")
        return
    name, subscript = split_subscript(field)
    if subscript is not None:
        yield from qualified_name(subscript.lower() if name == "metadata.annotations" else subscript, path)
        return
    # `spec.host` is the former name of spec.nodeName.
    name = "spec.nodeName" if name == "spec.host" else name
    if name not in allowed:
        yield not_supported(path.child("fieldPath"), name, allowed, plain=True)


def split_subscript(field: str) -> tuple[str, str | None]:
    """Split `metadata.labels['a']` into metadata.labels and a. The subscript is None for a plain field."""
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
        yield not_supported(path.child("resource"), resource, _RESOURCES, plain=True)
    divisor = reference.get("divisor") or "0"
    if parse_quantity(divisor):
        amount = str(parse_quantity(divisor))
        divisor_path = path.child("divisor")
        kind = "hugepages" if resource.startswith(_HUGE_PAGES) else _DIVIDED.get(resource.partition(".")[2], "")
        if kind == "cpu":
            if amount not in _CPU_DIVISORS:
                yield invalid(
                    divisor_path, resource, "only divisor's values 1m and 1 are supported with the cpu resource"
                )
        elif kind and amount not in _BYTE_DIVISORS:
            values = ", ".join(_BYTE_DIVISORS)
            yield invalid(
                divisor_path, resource, f"only divisor's values {values} are supported with the {kind} resource"
            )


_SOURCES: dict[str, Callable[[Json, Path], Errors]] = {
    "fieldRef": lambda reference, path: validate_field_reference(reference, ENV_FIELDS, path),
    "resourceFieldRef": validate_resource_reference,
    "configMapKeyRef": _validate_key,
    "secretKeyRef": _validate_key,
    "fileKeyRef": _validate_file_key,
}
