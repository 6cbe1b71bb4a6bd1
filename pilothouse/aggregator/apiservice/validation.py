"""Validation of APIServices. The name is `<version>.<group>`."""

from __future__ import annotations

import base64
from collections.abc import Callable

from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.validation.names import is_dns1035_label, is_dns1123_subdomain, is_valid_path_segment_name
from pilothouse.machinery.validation.object_meta import validate_object_meta, validate_object_meta_update
from pilothouse.machinery.validation.pattern_format import is_valid_port_num

_SPEC = root("spec")
_CONDITION_STATUSES = ("True", "False", "Unknown")


def validate_api_service(api_service: Json) -> Errors:
    spec = api_service["spec"]
    yield from validate_object_meta(metadata(api_service), namespaced=False, name_rule=_name_rule(spec))
    group, version = spec.get("group") or "", spec.get("version") or ""
    if not group and version != "v1":
        yield required(_SPEC.child("group"), "only v1 may have an empty group and it better be legacy kube")
    if group:
        for problem in is_dns1123_subdomain(group):
            yield invalid(_SPEC.child("group"), group, problem)
    for problem in is_dns1035_label(version):
        yield invalid(_SPEC.child("version"), version, problem)
    yield from _in_range(spec["groupPriorityMinimum"], 20000, _SPEC.child("groupPriorityMinimum"))
    yield from _in_range(spec["versionPriority"], 1000, _SPEC.child("versionPriority"))
    if spec.get("service") is None:
        if bundle := spec.get("caBundle"):
            size = f"{len(base64.b64decode(bundle))} bytes"
            yield invalid(_SPEC.child("caBundle"), size, "local APIServices may not have a caBundle")
        if spec.get("insecureSkipTLSVerify"):
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid(_SPEC.child("insecureSkipTLSVerify"), True, why)
    else:
        service, path = spec["service"], _SPEC.child("service")
        for name in ("namespace", "name"):
            if not service.get(name):
                yield required(path.child(name))
        port = service.get("port") or 0
        if problems := is_valid_port_num(port):
            yield invalid(path.child("port"), port, f"port is not valid: {', '.join(problems)}")
        if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
            yield invalid(_SPEC.child("insecureSkipTLSVerify"), True, "may not be true if caBundle is present")


def validate_api_service_update(api_service: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(api_service), metadata(old))
    yield from validate_api_service(api_service)


def validate_status_update(api_service: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(api_service), metadata(old))
    for position, condition in enumerate(api_service["status"].get("conditions") or ()):
        if condition["status"] not in _CONDITION_STATUSES:
            path = root("status", "conditions").index(position).child("status")
            yield not_supported(path, condition["status"], _CONDITION_STATUSES)


def _name_rule(spec: Json) -> Callable[[str, bool], list[str]]:
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

    def rule(name: str, prefix: bool) -> list[str]:
        if problems := is_valid_path_segment_name(name):
            return problems
        return [] if name == wanted else [f'must be `spec.version+"."+spec.group`: {quote(wanted)}']

    return rule


def _in_range(value: int, limit: int, path: Path) -> Errors:
    """Check 0 < value <= limit. The limit is allowed, although upstream's message says "less than"."""
    if not 0 < value <= limit:
        yield invalid(path, value, f"must be positive and less than {limit}")
