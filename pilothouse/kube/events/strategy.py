"""The rules of events, one strategy for each group that serves them. Events end by themselves after a while."""

from __future__ import annotations

from pilothouse.apiserver.registry.strategy import GarbageCollection
from pilothouse.kube.events.ttl import DEFAULT_TTL
from pilothouse.kube.events.validation import validate_loosely, validate_strictly, validate_unchanged
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json


class CoreEventStrategy(KubeStrategy):
    allow_create_on_update = True
    garbage_collection = GarbageCollection.UNSUPPORTED

    def __init__(self, ttl: int = DEFAULT_TTL) -> None:
        self._ttl = ttl

    def ttl(self, obj: Json) -> int:
        return self._ttl

    def validate(self, obj: Json) -> Errors:
        return validate_loosely(obj, controller_field="reportingComponent")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self.validate(obj)


class EventStrategy(CoreEventStrategy):
    """events.k8s.io/v1."""

    def validate(self, obj: Json) -> Errors:
        yield from validate_loosely(obj, controller_field="reportingController")
        yield from self.validate_metadata(obj)
        yield from validate_strictly(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_loosely(obj, controller_field="reportingController")
        yield from self.validate_metadata_update(obj, old)
        yield from validate_unchanged(obj, old)
