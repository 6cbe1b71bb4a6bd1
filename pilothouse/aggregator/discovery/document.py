"""The document of all groups, made again when somebody asks for it and something has changed."""

from __future__ import annotations

from pilothouse.aggregator.api_services_to_register import Priorities
from pilothouse.aggregator.discovery.merging import RankedVersion, local_versions, merged_groups
from pilothouse.apiserver.discovery.groups import group_discovery_list
from pilothouse.apiserver.discovery.handlers import AggregatedDocument
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.discovery.metrics import AGGREGATIONS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Known:
    """What the document is made from. What has not changed is the same object, so comparing two of these is cheap."""

    servers: tuple[tuple[GroupDocuments, ...], ...] = ()
    remote: tuple[RankedVersion, ...] = ()


class Documents:
    def __init__(self, priorities: Priorities) -> None:
        self._priorities = priorities
        self._known = Known()
        self._document = self._made_from(self._known)

    def of(self, known: Known) -> AggregatedDocument:
        if known != self._known:
            self._known, self._document = known, self._made_from(known)
        return self._document

    def _made_from(self, known: Known) -> AggregatedDocument:
        def make() -> Json:
            AGGREGATIONS.inc()
            versions = (*known.remote, *local_versions(known.servers, self._priorities))
            return group_discovery_list(merged_groups(versions))

        return AggregatedDocument(make)
