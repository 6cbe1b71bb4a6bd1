"""The tables of kinds of which more is stored than shown are those that the types say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whole_server import whole_server

from pilothouse.apiserver.registry.stored_form import KEEPS_EMPTY_BYTES, KEEPS_RAW_TEXT
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.nodes import TypeNode
from pilothouse.machinery.schema.object_type import ObjectType
from pilothouse.machinery.schema.printing import keeps_empty_bytes
from pilothouse.testing import API

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def _built_in_types(api: API) -> list[ObjectType]:
    """Return the types of all kinds that are stored."""
    found = []
    for root in ("/api", "/apis"):
        for group in (await api.request("GET", root, accept=AGGREGATED)).json["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    name, kind = group["metadata"].get("name", ""), resource["responseKind"]["kind"]
                    found.append(types.of(GroupVersionKind(name, version["version"], kind)))
    return [each for each in found if each is not None]


def _structs(node: TypeNode, seen: set[TypeNode]) -> Iterator[TypeNode]:
    if node in seen:
        return
    seen.add(node)
    yield node
    for field in node.fields.values():
        yield from _structs(field.node, seen)
    if node.element is not None:
        yield from _structs(node.element, seen)


def _keeps_bytes(node: TypeNode) -> bool:
    return any(keeps_empty_bytes(struct, field) for struct in _structs(node, set()) for field in struct.fields.values())


async def test_the_tables_have_the_kinds_that_the_types_say(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        known = await _built_in_types(api)
    assert len(known) > 50
    assert {each.gvk.group_kind for each in known if each.raw_fields is not None} == KEEPS_RAW_TEXT
    assert {each.gvk.group_kind for each in known if _keeps_bytes(each.node)} == KEEPS_EMPTY_BYTES
