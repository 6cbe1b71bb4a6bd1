"""Establishing: a definition whose names are accepted is served from now on, and says so."""

from __future__ import annotations

from pilothouse.extensions.controllers.definitions import Definitions
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.customresourcedefinitions.conditions import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    Condition,
    is_true,
    set_condition,
)
from pilothouse.machinery.objects import Json

_ACCEPTED = Condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")


class EstablishingController:
    def __init__(self, definitions: Definitions, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is not None and _is_due(definition):
            await self._writer.write(definition, _establish)


def _is_due(definition: Json) -> bool:
    return is_true(definition, NAMES_ACCEPTED) and not is_true(definition, ESTABLISHED)


def _establish(current: Json) -> None:
    if _is_due(current):
        set_condition(current, _ACCEPTED)
