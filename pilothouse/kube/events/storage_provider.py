"""The storages of events: one registry, served by two groups."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.table import Cell
from pilothouse.kube.events.conversion import EVENT, FIELD_LABELS, GROUP, from_core, to_core
from pilothouse.kube.events.resource import EVENTS
from pilothouse.kube.events.strategy import CoreEventStrategy, EventStrategy
from pilothouse.kube.served import Registries, VersionConversion, served
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.fields import Requirement, label_not_supported


class EventsStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), [_events(registries)])])


def core_event_storages(registries: Registries) -> list[ServedResource]:
    registry = registries.open(EVENTS)
    return [served(registry, registry.with_strategy(CoreEventStrategy(registries.event_ttl)))]


def _events(registries: Registries) -> ServedResource:
    registry = registries.open(EVENTS)
    view = registry.with_strategy(EventStrategy(registries.event_ttl))
    conversion = VersionConversion(kind=EVENT, to_stored=to_core, from_stored=from_core, default=_no_defaults)
    return replace(
        served(registry, view, conversion=conversion),
        convert_field=_stored_label,
        columns=[replace(column, cell=_of_stored(column.cell)) for column in EVENTS.columns],
    )


def _no_defaults(_: Json) -> None:
    """Events have none."""


def _stored_label(requirement: Requirement) -> Requirement:
    label = FIELD_LABELS.get(requirement.field)
    if label is None:
        raise ValueError(label_not_supported(requirement.field))
    return replace(requirement, field=label)


def _of_stored(cell: Cell) -> Cell:
    return lambda event: cell(to_core(dict(event)))
