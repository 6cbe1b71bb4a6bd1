"""The informer of APIServices, shared by all parts of the aggregator."""

from __future__ import annotations

from pilothouse.aggregator.apiservice.order import group_of
from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.machinery.objects import Json


class APIServices(RegistryInformer):
    def of_group(self, group: str) -> list[Json]:
        return [each for each in self.all() if group_of(each) == group]
