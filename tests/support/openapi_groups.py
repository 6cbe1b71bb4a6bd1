"""Groups whose storages can do what a test says, and the documents made from them."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.openapi import v2, v3
from pilothouse.apiserver.openapi.containers import version_container
from pilothouse.apiserver.openapi.route import RouteContainer
from pilothouse.apiserver.registry.resource import Names
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json

EVERYTHING = ("create", "delete", "delete_collection", "get", "list", "update", "watch")

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CONFIG_MAPS = Names("configmaps", kind="ConfigMap")
PODS = Names("pods", kind="Pod")


async def _unused(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("documents are made without calling a storage")


def storage(*methods: str, **attributes: Any) -> object:
    return type("Storage", (), {**dict.fromkeys(methods, _unused), **attributes})()


def served(
    names: Names, kind: GroupVersionKind, able: object, *, namespaced: bool = True, **more: Any
) -> ServedResource:
    return ServedResource(
        names=names, namespaced=namespaced, storage=able, kind=kind, decoder=TypedDecoder(kind), **more
    )


def core(*resources: ServedResource) -> APIVersion:
    return APIVersion(GroupVersion("", "v1"), list(resources))


def container(version: APIVersion) -> RouteContainer:
    return version_container(APIGroup(version.group_version.group, [version]), version)


def v3_document(version: APIVersion) -> Json:
    document: Json = orjson.loads(v3.document(container(version)))
    return document


def v2_document(*versions: APIVersion) -> Json:
    document: Json = orjson.loads(v2.document(container(version) for version in versions))
    return document


def config_maps() -> ServedResource:
    return served(CONFIG_MAPS, CONFIG_MAP, storage(*EVERYTHING))
