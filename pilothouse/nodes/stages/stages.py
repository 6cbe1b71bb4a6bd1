"""All stages that there are, whose turn it is, and playing one."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from pilothouse.client.events.event import WARNING
from pilothouse.client.rest.options import DeleteOptions, PatchType
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of, resource_version_of
from pilothouse.nodes.stages.errors import InvalidStage
from pilothouse.nodes.stages.functions import Surroundings, functions
from pilothouse.nodes.stages.stage import Stage, choose, read_stage

logger = logging.getLogger(__name__)

_TYPES = {"json": PatchType.JSON, "merge": PatchType.MERGE, "strategic": PatchType.STRATEGIC}

Tell = Callable[[Json, str, str, str], None]
"""Records an event: about what, its type, reason and message."""


@dataclass(frozen=True, slots=True)
class Pending:
    stage: Stage
    due: float
    played: str = ""
    """The version that came of playing it, which is the same as before for a stage that changed nothing."""


class Stages:
    _pending: dict[tuple[str, str], Pending]  # by kind, and the object's key

    def __init__(self, around: Surroundings, seed: int, tell: Tell) -> None:
        self._around, self._tell = around, tell
        self._functions = functions(around)
        self._chance = random.Random(seed)
        self._read: dict[str, Stage] = {}
        self._pending = {}
        self.on_change: list[Callable[[], None]] = []

    def set(self, obj: Json) -> None:
        """One that can not be understood is refused, loudly."""
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
        """Whether there are stages for objects of the kind: they alone say then what becomes of them."""
        return any(stage.kind == kind for stage in self._read.values())

    def next(self, kind: str, key: str, obj: Json) -> Pending | None:
        """Return the stage whose turn it is; one that was chosen stays so while it matches."""
        pending = self._pending.get((kind, key))
        version = resource_version_of(obj)
        if pending is not None and pending.played == version:
            return None
        if pending is None or pending.played or not pending.stage.matches(obj):
            pending = self._choose(kind, obj)
        if pending is None:
            self.forget(kind, key)
        else:
            self._pending[kind, key] = pending
        return pending

    async def play(self, kind: str, key: str, obj: Json, objects: ResourceClient) -> Json:
        """Do what the pending stage says, and return what came of it. Raises StatusError, ConnectionFailed."""
        pending = self._pending[kind, key]
        try:
            answer = await self._play(pending.stage, obj, objects)
        except InvalidStage as error:
            self._read.pop(pending.stage.name, None)
            stage = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": pending.stage.name}}
            self._refuse(stage, error)
            answer = obj
        version = resource_version_of(answer)
        self._pending[kind, key] = Pending(pending.stage, pending.due, version)
        if version != resource_version_of(obj):
            del self._pending[kind, key]
        return answer

    def forget(self, kind: str, key: str) -> None:
        self._pending.pop((kind, key), None)

    def _choose(self, kind: str, obj: Json) -> Pending | None:
        stages = [stage for stage in self._read.values() if stage.kind == kind]
        stage = choose(stages, obj, self._chance)
        now = self._around.now()
        return None if stage is None else Pending(stage, now + stage.wait_for(obj, now, self._chance))

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
    """Return the finalizers that the object has then; None if they stay."""
    if not stage.finalizers:
        return None
    old: list[str] = metadata(obj).get("finalizers") or []
    removed = {each.get("value") for each in stage.finalizers.get("remove") or ()}
    new = [] if stage.finalizers.get("empty") else [each for each in old if each not in removed]
    new += [each["value"] for each in stage.finalizers.get("add") or () if each["value"] not in new]
    return None if new == old else new
