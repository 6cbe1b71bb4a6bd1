"""Reviews: resources that can only be created, and whose creation answers a question. Nothing is stored."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.registry.interface import Creator
from pilothouse.apiserver.registry.resource import Names
from pilothouse.machinery.names import GroupVersion


def served_review(version: GroupVersion, kind: str, storage: Creator, *, namespaced: bool = False) -> ServedResource:
    return ServedResource(
        names=Names(f"{kind.lower()}s", kind=kind),
        namespaced=namespaced,
        storage=storage,
        kind=version.kind(kind),
        decoder=TypedDecoder(version.kind(kind)),
    )
