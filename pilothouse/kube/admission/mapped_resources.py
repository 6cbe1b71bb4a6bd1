"""Which resources have objects of a kind, as discovery knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.kube.admission.owner_references import MappedResource
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, name_of


def mapped_resources(groups: Iterable[Json], kind: GroupVersionKind) -> list[MappedResource]:
    return [
        MappedResource(resource["resource"], resource["scope"] == "Namespaced")
        for resource in _resources(groups, kind)
        if (resource.get("responseKind") or {}).get("kind") == kind.kind
    ]


def _resources(groups: Iterable[Json], kind: GroupVersionKind) -> Iterator[Json]:
    for group in groups:
        if name_of(group) == kind.group:
            for version in group["versions"]:
                if version["version"] == kind.version:
                    yield from version.get("resources") or ()
