"""Walking over all containers of a pod."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def all_containers(spec: Json) -> Iterator[Json]:
    for kind in CONTAINER_LISTS:
        yield from spec.get(kind) or ()


def containers_with_path(spec: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    """Each container with its place under the spec's path, in upstream's order."""
    for kind in CONTAINER_LISTS:
        for position, container in enumerate(spec.get(kind) or ()):
            yield path.child(kind).index(position), container
