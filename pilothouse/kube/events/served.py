"""Events as two groups serve them: core v1 and events.k8s.io/v1 share one registry."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.table import Cell
from pilothouse.kube.events.conversion import EVENT, FIELD_LABELS, from_core, to_core
from pilothouse.kube.events.resource import EVENTS
from pilothouse.kube.events.strategy import CoreEventStrategy, EventStrategy
from pilothouse.kube.other_versions import VersionConversion
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.fields import Requirement, label_not_supported


def core_event_storages(registries: Registries) -> list[ServedResource]:
    registry = registries.open(EVENTS)
    return [served(registry, registry.with_strategy(CoreEventStrategy(registries.event_ttl)))]


def served_events(registries: Registries) -> list[ServedResource]:
    registry = registries.open(EVENTS)
    view = registry.with_strategy(EventStrategy(registries.event_ttl))
    conversion = VersionConversion(kind=EVENT, to_stored=to_core, from_stored=from_core, default=_no_defaults)
    event = replace(
        served(registry, view, conversion=conversion),
        convert_field=_stored_label,
        columns=[replace(column, cell=_of_stored(column.cell)) for column in EVENTS.columns],
    )
    return [event]


def _no_defaults(_: Json) -> None:
    """Events have no defaults."""


def _stored_label(requirement: Requirement) -> Requirement:
    label = FIELD_LABELS.get(requirement.field)
    if label is None:
        raise ValueError(label_not_supported(requirement.field))
    return replace(requirement, field=label)


def _of_stored(cell: Cell) -> Cell:
    return lambda event: cell(to_core(dict(event)))
