"""Finalizers that keep an object while it is in use: put on what is not being deleted, taken off when it may go."""

from __future__ import annotations

from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.objects import Json, metadata


def is_deletion_candidate(obj: Json, finalizer: str) -> bool:
    return bool(metadata(obj).get("deletionTimestamp")) and finalizer in _finalizers(obj)


def needs_finalizer(obj: Json, finalizer: str) -> bool:
    """Admission adds it; those that were stored without admission lack it."""
    return not metadata(obj).get("deletionTimestamp") and finalizer not in _finalizers(obj)


async def add_finalizer(objects: ResourceClient, obj: Json, finalizer: str) -> None:
    await _write(objects, obj, [*_finalizers(obj), finalizer])


async def remove_finalizer(objects: ResourceClient, obj: Json, finalizer: str) -> None:
    await _write(objects, obj, [each for each in _finalizers(obj) if each != finalizer])


async def _write(objects: ResourceClient, obj: Json, finalizers: list[str]) -> None:
    await objects.update({**obj, "metadata": {**metadata(obj), "finalizers": finalizers}})


def _finalizers(obj: Json) -> list[str]:
    return metadata(obj).get("finalizers") or []
