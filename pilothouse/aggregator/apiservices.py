"""The APIServices as they are now: what every part of the aggregator reads and listens to."""

from __future__ import annotations

from pilothouse.aggregator.apiservice.order import group_of
from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.machinery.objects import Json


class APIServices(RegistryInformer):
    def of_group(self, group: str) -> list[Json]:
        return [each for each in self.all() if group_of(each) == group]
