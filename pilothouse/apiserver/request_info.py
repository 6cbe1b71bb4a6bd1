"""The meaning of a request, parsed from method, path and query: upstream's RequestInfo.

GET /api/v1/namespaces/ns/pods/p/status   → verb get, resource pods, subresource status, name p, namespace ns
GET /apis/apps/v1/deployments?watch=1     → verb watch, group apps, resource deployments
GET /healthz                              → verb get, no resource
"""

from __future__ import annotations

from dataclasses import field, replace

from pilothouse.apiserver.endpoints.options import boolean
from pilothouse.apiserver.http import Request
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.selectors import fields
from pilothouse.machinery.validation.names import is_valid_path_segment_name

_API_PREFIXES = {"api", "apis"}
_GROUPLESS_PREFIXES = {"api"}
_SPECIAL_VERBS = {"proxy", "watch"}
_NAMESPACE_SUBRESOURCES = {"status", "finalize"}
_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_WITH_SELECTORS = {"list", "watch", "deletecollection"}
_LASTING_VERBS = {"watch", "proxy"}
_LASTING_SUBRESOURCES = {"attach", "exec", "proxy", "log", "portforward"}
_LONGEST_WITH_NAME = 4096
"""Longer selectors are not searched for a name: the user is not authenticated yet."""


class UndeterminedRequest(Exception):
    """The path has a verb prefix without a resource."""


@dataclass(frozen=True, slots=True)
class RequestInfo:
    path: str
    verb: str
    is_resource: bool = False
    prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    """The path segments from the resource on: resource, name, subresource and the rest."""
    verb_in_path: bool = False
    """Whether the path is a deprecated /watch/ or /proxy/ path."""
    field_selector: str = ""
    label_selector: str = ""

    group_resource: GroupResource = field(init=False, compare=False, repr=False)
    is_long_running: bool = field(init=False, compare=False, repr=False)
    """Whether timeouts and limits do not apply: watches and connections that are taken over."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.resource))
        object.__setattr__(self, "is_long_running", self._may_last())

    def _may_last(self) -> bool:
        if self.is_resource:
            return self.verb in _LASTING_VERBS or self.subresource in _LASTING_SUBRESOURCES
        return self.path.startswith("/debug/pprof/")


def request_info(request: Request) -> RequestInfo:
    """Return the parsed request. A request without a recognized structure has no resource, and ends at the not-found
    handler.

    Raises BadRequest for too many parameters, UndeterminedRequest for /watch or /proxy without a resource.
    """
    info = _from_path(request.method, request.path)
    if not info.is_resource or info.name or info.verb not in ("get", "delete", "watch"):
        return info
    # `watch` makes a list a watch, and a field selector may name one object.
    verb, name = info.verb, ""
    if verb == "get":
        verb, name = "watch" if boolean(request, "watch") else "list", _selected_name(request)
    elif verb == "delete":
        verb = "deletecollection"
    if verb in _VERBS_WITH_SELECTORS and not info.verb_in_path:
        by_fields, by_labels = request.whole_param("fieldSelector"), request.whole_param("labelSelector")
        return replace(info, verb=verb, name=name, field_selector=by_fields, label_selector=by_labels)
    return replace(info, verb=verb, name=name)


def verb_of(method: str) -> str:
    """Return the verb of a method on one object; "" for other methods."""
    return _VERBS.get(method, "")


# Each short segment costs more than ten times its length.
@bounded_cache(entries=4096, key_bytes=256)
def _from_path(method: str, path: str) -> RequestInfo:
    verb = method.lower()
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in _API_PREFIXES:
        return RequestInfo(path, verb)
    prefix, *parts = parts
    group = ""
    if prefix not in _GROUPLESS_PREFIXES:
        if len(parts) < 3:
            return RequestInfo(path, verb, prefix=prefix)
        group, *parts = parts
    version, *parts = parts
    verb, verb_in_path = verb_of(method), parts[0] in _SPECIAL_VERBS
    if verb_in_path:
        verb, *parts = parts
        if not parts:
            raise UndeterminedRequest("unable to determine kind and namespace from url")
    namespace, parts = _split_namespace(parts)
    return RequestInfo(
        path,
        verb,
        is_resource=True,
        prefix=prefix,
        group=group,
        version=version,
        namespace=namespace,
        resource=parts[0],
        name=parts[1] if len(parts) > 1 else "",
        subresource=parts[2] if len(parts) > 2 and verb != "proxy" else "",
        parts=tuple(parts),
        verb_in_path=verb_in_path,
    )


def _split_namespace(parts: list[str]) -> tuple[str, list[str]]:
    if parts[0] != "namespaces" or len(parts) < 2:
        return "", parts
    if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        return parts[1], parts[2:]
    return parts[1], parts


def _selected_name(request: Request) -> str:
    selector = request.whole_param("fieldSelector")
    if not selector or len(selector) > _LONGEST_WITH_NAME:
        return ""
    try:
        name = fields.parse(selector).requires_exact_match("metadata.name")
    except ValueError:
        return ""
    return name if name and not is_valid_path_segment_name(name) else ""
