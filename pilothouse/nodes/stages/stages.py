"""Selection and execution of stages."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace

from pilothouse.client.events.event import WARNING
from pilothouse.client.rest.options import DeleteOptions, PatchType
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of, resource_version_of
from pilothouse.nodes.stages.functions import Surroundings, functions
from pilothouse.nodes.stages.pipeline import InvalidStage
from pilothouse.nodes.stages.stage import Stage, choose, read_stage

logger = logging.getLogger(__name__)

_TYPES = {"json": PatchType.JSON, "merge": PatchType.MERGE, "strategic": PatchType.STRATEGIC}

_PAUSE = 1.0
"""Minimum seconds before a stage repeats, against busy loops."""

Tell = Callable[[Json, str, str, str], None]
"""Records an event: object, type, reason, message."""


@dataclass(frozen=True, slots=True)
class Pending:
    stage: Stage
    due: float
    version: str
    """Version of the object at the time of selection."""
    is_played: bool = False
    """Whether the stage was executed without effect; it waits for another change of the object."""


class Stages:
    _pending: dict[tuple[str, str], Pending]  # by kind and object key
    _last: dict[tuple[str, str], tuple[str, float]]  # last executed stage and its time

    def __init__(self, around: Surroundings, seed: int, tell: Tell) -> None:
        self._around, self._tell = around, tell
        self._functions = functions(around)
        self._chance = random.Random(seed)
        self._read: dict[str, Stage] = {}
        self._pending, self._last = {}, {}
        self.on_change: list[Callable[[], None]] = []

    def set(self, obj: Json) -> None:
        """Add or update a stage; invalid stages are rejected with an event."""
        self._read.pop(name_of(obj), None)
        try:
            stage = read_stage(obj, self._functions)
            if stage is not None:
                self._read[stage.name] = stage
        except InvalidStage as error:
            self._refuse(obj, error)
        self._changed()

    def remove(self, name: str) -> None:
        self._read.pop(name, None)
        self._changed()

    def drive(self, kind: str) -> bool:
        """Return whether stages drive objects of the kind."""
        return any(stage.kind == kind for stage in self._read.values())

    def next(self, kind: str, key: str, obj: Json) -> Pending | None:
        """Return the pending stage, selected anew after each change of the object; a stage selected again keeps its
        elapsed delay."""
        pending = self._pending.get((kind, key))
        if pending is not None and pending.version == resource_version_of(obj):
            return None if pending.is_played else pending
        chosen = self._choose(kind, key, obj)
        if chosen is None:
            self._pending.pop((kind, key), None)
            return None
        if pending is not None and pending.stage is chosen.stage and not pending.is_played:
            chosen = replace(chosen, due=pending.due)
        self._pending[kind, key] = chosen
        return chosen

    async def play(self, kind: str, key: str, obj: Json, objects: ResourceClient) -> Json:
        """Execute the pending stage, and return the object. Raises StatusError or ConnectionFailed."""
        pending = self._pending[kind, key]
        try:
            answer = await self._play(pending.stage, obj, objects)
        except InvalidStage as error:
            self._read.pop(pending.stage.name, None)
            stage = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": pending.stage.name}}
            self._refuse(stage, error)
            answer = obj
        if resource_version_of(answer) == resource_version_of(obj):
            self._pending[kind, key] = replace(pending, is_played=True)
        else:
            self._pending.pop((kind, key), None)
            self._last[kind, key] = (pending.stage.name, self._around.now())
        return answer

    def forget(self, kind: str, key: str) -> None:
        """Drop the state of a deleted object."""
        self._pending.pop((kind, key), None)
        self._last.pop((kind, key), None)

    def _choose(self, kind: str, key: str, obj: Json) -> Pending | None:
        stages = [stage for stage in self._read.values() if stage.kind == kind]
        stage = choose(stages, obj, self._chance)
        now, version = self._around.now(), resource_version_of(obj)
        if stage is None:
            return None
        due = now + stage.wait_for(obj, now, self._chance)
        name, at = self._last.get((kind, key), ("", 0.0))
        return Pending(stage, max(due, at + _PAUSE) if name == stage.name else due, version)

    async def _play(self, stage: Stage, obj: Json, objects: ResourceClient) -> Json:
        name = name_of(obj)
        if stage.event:
            event = stage.event
            self._tell(obj, event.get("type") or "Normal", event.get("reason") or "", event.get("message") or "")
        if (finalizers := _finalizers(stage, obj)) is not None:
            obj = await objects.patch(name, {"metadata": {"finalizers": finalizers or None}}, PatchType.MERGE)
        if stage.delete:
            await objects.delete(name, DeleteOptions(grace_period_seconds=0))
            return obj
        for patch in stage.patches:
            self._around.node = name if stage.kind == "Node" else ""
            body = patch.body(obj)
            obj = await objects.patch(name, body, _TYPES[patch.type], subresource=patch.subresource)
        return obj

    def _refuse(self, stage: Json, error: InvalidStage) -> None:
        logger.warning("stage %s is refused: %s", name_of(stage), error)
        self._tell(stage, WARNING, "InvalidStage", str(error))

    def _changed(self) -> None:
        self._pending.clear()
        for tell in self.on_change:
            tell()


def _finalizers(stage: Stage, obj: Json) -> list[str] | None:
    """Return the new finalizers; None if unchanged."""
    if not stage.finalizers:
        return None
    old: list[str] = metadata(obj).get("finalizers") or []
    removed = {finalizer.get("value") for finalizer in stage.finalizers.get("remove") or ()}
    new = [] if stage.finalizers.get("empty") else [finalizer for finalizer in old if finalizer not in removed]
    new += [finalizer["value"] for finalizer in stage.finalizers.get("add") or () if finalizer["value"] not in new]
    return None if new == old else new
