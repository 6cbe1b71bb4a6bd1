"""Discovery of one Service. APIServices of the same Service share one request and its outcome, success or failure.

Documents are decoded strictly, because they become part of the one document that every client decodes. A field of the
wrong type must fail here, where the failure affects one server only.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import orjson

from pilothouse.aggregator.download import TIMEOUT, Download, DownloadFailed
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.endpoints.negotiation import parse_accept
from pilothouse.apiserver.http import Handler
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

_USER = User("system:kube-aggregator", groups=(SYSTEM_PRIVILEGED_GROUP,))
_LEGACY_USER = User("system:kube-aggregator")
_KINDS = [{"g": "apidiscovery.k8s.io", "v": version, "as": "APIGroupDiscoveryList"} for version in ("v2", "v2beta1")]
_ACCEPT = ",".join(f"application/json;g={kind['g']};v={kind['v']};as={kind['as']}" for kind in _KINDS)

TICKS: Iterator[int] = itertools.count(1)
"""Logical clock that orders requests and changes."""

Versions: TypeAlias = dict[GroupVersion, Json]
"""Group version → its entry in an aggregated document, without freshness."""
_SCOPES = ("Namespaced", "Cluster")


class ServiceDiscovery:
    _asked_at: int  # tick of the newest request; callers that need a newer answer send another request
    _outcome: Versions | DownloadFailed | None  # None if the server lacks aggregated discovery
    _known: Versions  # last answer, for 304 responses
    _etag: str

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._asked_at = 0
        self._outcome = None
        self._known = {}
        self._etag = ""

    async def versions(self, handler: Handler, group_version: GroupVersion, *, since: int) -> Versions:
        """Return discovery requested after the tick `since`. Raises DownloadFailed."""
        async with self._lock:
            if self._asked_at <= since:
                self._asked_at = next(TICKS)
                self._outcome = await self._ask(handler)
        if isinstance(self._outcome, DownloadFailed):
            raise DownloadFailed(str(self._outcome))
        if self._outcome is None:
            path = f"/apis/{group_version}"
            answer = await Download(path, _LEGACY_USER, timeout=self._timeout).get(handler)
            if answer.status != 200:
                raise DownloadFailed(f"{path}: status {answer.status}")
            try:
                return await asyncio.to_thread(decode_resource_list, answer.body, group_version)
            except MalformedDiscovery as error:
                raise DownloadFailed(f"{path}: {error}") from None
        return self._outcome

    async def _ask(self, handler: Handler) -> Versions | DownloadFailed | None:
        download = Download("/apis", _USER, accept=_ACCEPT, etag=self._etag, timeout=self._timeout)
        try:
            answer = await download.get(handler)
            if answer.status == 304 and self._etag:
                return self._known
            if answer.status == 503:
                raise DownloadFailed("/apis: the service is unavailable")
            if answer.status != 200 or not _is_aggregated(answer.content_type):
                return None
            self._known = await asyncio.to_thread(decode_group_list, answer.body)
            self._etag = answer.etag
            return self._known
        except DownloadFailed as failure:
            return failure
        except MalformedDiscovery as error:
            return DownloadFailed(f"/apis: {error}")


def _is_aggregated(content_type: str) -> bool:
    clauses = parse_accept(content_type)
    return any(kind.items() <= dict(clause.params).items() for clause in clauses for kind in _KINDS)


class MalformedDiscovery(Exception):
    """The document does not have the declared form."""


def decode_group_list(body: bytes) -> Versions:
    """Decode an APIGroupDiscoveryList; v2 and v2beta1 have the same form."""
    versions: Versions = {}
    for group in _objects(_loads(body), "items"):
        name = _string(_object(group, "metadata"), "name")
        for version in _objects(group, "versions"):
            resources = [_resource(resource) for resource in _objects(version, "resources")]
            decoded = {"version": _string(version, "version"), **_list("resources", resources)}
            versions[GroupVersion(name, decoded["version"])] = decoded
    return versions


def decode_resource_list(body: bytes, group_version: GroupVersion) -> Versions:
    """Decode an APIResourceList, from a server without aggregated discovery."""
    parents: dict[str, Json] = {}
    resources = [
        {
            "resource": _string(entry, "name"),
            "responseKind": _kind(entry),
            "scope": _SCOPES[0] if _checked(entry, "namespaced", bool, False) else _SCOPES[1],
            "singularResource": _string(entry, "singularName"),
            "verbs": _strings(entry, "verbs"),
            **_list("shortNames", _strings(entry, "shortNames")),
            **_list("categories", _strings(entry, "categories")),
        }
        for entry in _objects(_loads(body), "resources")
    ]
    for resource in resources:
        if "/" not in resource["resource"]:
            parents[resource["resource"]] = resource
    for resource in resources:
        name, slash, subresource = resource["resource"].partition("/")
        if slash:
            _add_subresource(parents, name, {**resource, "resource": subresource})
    discovery = {"version": group_version.version, **_list("resources", list(parents.values()))}
    return {group_version: discovery}


def _resource(resource: Json) -> Json:
    scope = _string(resource, "scope")
    if scope not in _SCOPES:
        raise MalformedDiscovery(f"scope is {scope!r}")
    subresources = [_subresource(subresource) for subresource in _objects(resource, "subresources")]
    return {
        "resource": _string(resource, "resource"),
        "responseKind": _kind(_object(resource, "responseKind")),
        "scope": scope,
        "singularResource": _string(resource, "singularResource"),
        "verbs": _strings(resource, "verbs"),
        **_list("shortNames", _strings(resource, "shortNames")),
        **_list("categories", _strings(resource, "categories")),
        **_list("subresources", subresources),
    }


def _subresource(subresource: Json) -> Json:
    types = [_kind(kind) for kind in _objects(subresource, "acceptedTypes")]
    return {
        "subresource": _string(subresource, "subresource"),
        "responseKind": _kind(_object(subresource, "responseKind")),
        **_list("acceptedTypes", types),
        "verbs": _strings(subresource, "verbs"),
    }


def _kind(kind: Json) -> Json:
    """Return the kind; an empty kind if absent, because old Go clients require the field."""
    return {key: _string(kind, key) for key in ("group", "version", "kind")}


def _add_subresource(parents: dict[str, Json], name: str, child: Json) -> None:
    orphaned = {"resource": name, "responseKind": _kind({}), "scope": child["scope"]}
    parent = parents.setdefault(name, orphaned | {"singularResource": "", "verbs": []})
    if parent["scope"] != child["scope"]:
        raise MalformedDiscovery(f"{name} and its subresource {child['resource']} are not of the same scope")
    kind: Json = child["responseKind"]
    resource = {
        "subresource": child["resource"],
        "responseKind": (kind if kind["kind"] else _kind({})),
        "verbs": child["verbs"],
    }
    parent.setdefault("subresources", []).append(resource)


def _loads(body: bytes) -> Json:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedDiscovery(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedDiscovery("not a JSON object")
    return document


def _checked(obj: Json, key: str, kind: type, default: Any) -> Any:
    value = obj.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise MalformedDiscovery(f"{key} is {value!r}")
    return value


def _string(obj: Json, key: str) -> str:
    value: str = _checked(obj, key, str, "")
    return value


def _object(obj: Json, key: str) -> Json:
    value: Json = _checked(obj, key, dict, {})
    return value


def _objects(obj: Json, key: str) -> Iterator[Json]:
    yield from _each(obj, key, lambda value: isinstance(value, dict))


def _strings(obj: Json, key: str) -> list[str]:
    return list(_each(obj, key, lambda value: isinstance(value, str)))


def _each(obj: Json, key: str, is_right: Callable[[Any], bool]) -> Iterator[Any]:
    for value in _checked(obj, key, list, []):
        if not is_right(value):
            raise MalformedDiscovery(f"{key} has {value!r} in it")
        yield value


def _list(key: str, values: list[Any]) -> Json:
    return {key: values} if values else {}
