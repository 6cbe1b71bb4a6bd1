"""Schema definitions of the custom resources of one group version, on top of the packaged definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property

import orjson

from pilothouse.apiserver.openapi.definitions import PACKAGED, Definition, definition_of
from pilothouse.apiserver.openapi.verbs import DELETE_BODY
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.openapi.schemas import list_schema, v2_schema, v3_schema
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json

_KINDS = "x-kubernetes-group-version-kind"
_NOT_OF_CLIENTS = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
_SELECTABLE = "x-kubernetes-selectable-fields"


class CustomDefinitions:
    """Built with the first document."""

    def __init__(self, resources: Callable[[], Iterable[CustomResource]], group_version: GroupVersion) -> None:
        self._resources = resources
        self._group_version = group_version

    def v2(self, name: str) -> Definition:
        return self._own_v2.get(name) or PACKAGED.v2(name)

    def v3(self, name: str) -> Definition:
        return self._own_v3.get(name) or (_delete_options() if name == DELETE_BODY else PACKAGED.v3(name))

    @cached_property
    def _own_v2(self) -> dict[str, Definition]:
        return self._made(lambda resource: _v2_of(resource, self._group_version.version), v2=True)

    @cached_property
    def _own_v3(self) -> dict[str, Definition]:
        return self._made(lambda resource: _v3_of(resource, self._group_version.version), v2=False)

    def _made(self, schema_of: Callable[[CustomResource], Json], *, v2: bool) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        for resource in self._resources():
            kind, names = resource.kind(self._group_version.version), resource.names
            listed, own = self._group_version.kind(names.list_kind), definition_of(kind)
            schema = list_schema(own, kind=names.kind, list_kind=names.list_kind, plural=names.plural, v2=v2)
            paths = [path.removeprefix(".") for path in resource.versions[kind.version].selectable_fields]
            selectable = {_SELECTABLE: [{"fieldPath": path} for path in paths]} if paths else {}
            found[own] = Definition.of(schema_of(resource) | _kinds(kind) | selectable)
            found[definition_of(listed)] = Definition.of(schema | _kinds(listed) | selectable)
        return found


@cache
def _delete_options() -> Definition:
    """Return DeleteOptions with the groups that upstream's client scheme registers."""
    schema: Json = orjson.loads(PACKAGED.v3(DELETE_BODY).json)
    return Definition.of(schema | {_KINDS: [kind for kind in schema[_KINDS] if kind["group"] not in _NOT_OF_CLIENTS]})


def _v2_of(resource: CustomResource, version: str) -> Json:
    schema = resource.versions[version].schema
    if schema is None:
        return {"type": "object"}
    return v2_schema(schema, preserve_unknown_fields=bool(resource.spec.get("preserveUnknownFields")))


def _v3_of(resource: CustomResource, version: str) -> Json:
    schema = resource.versions[version].schema
    return {"type": "object"} if schema is None else v3_schema(schema)


def _kinds(kind: GroupVersionKind) -> Json:
    return {_KINDS: [{"group": kind.group, "kind": kind.kind, "version": kind.version}]}
