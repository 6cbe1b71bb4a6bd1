"""The types of kinds, from the OpenAPI documents that the server publishes."""

from __future__ import annotations

import asyncio

from pilothouse.client.rest.client import Client
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.openapi_types import OpenAPITypes
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json

_KINDS = "x-kubernetes-group-version-kind"


class SchemaResolver:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def declared(self, kind: GroupVersionKind) -> Declared | None:
        """None for a kind without a schema."""
        try:
            document = await self._client.get_json(_path(kind.group_version))
        except NotFound:
            return None
        return await asyncio.to_thread(_declared, document, kind)


def _path(version: GroupVersion) -> str:
    return f"/openapi/v3/apis/{version}" if version.group else f"/openapi/v3/api/{version}"


def _declared(document: Json, kind: GroupVersionKind) -> Declared | None:
    schemas = (document.get("components") or {}).get("schemas") or {}
    wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    found = (schema for schema in schemas.values() if wanted in (schema.get(_KINDS) or ()))
    schema = next(found, None)
    return None if schema is None else OpenAPITypes(schemas).of(schema)
