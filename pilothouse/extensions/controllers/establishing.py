"""The establishing controller: sets Established on definitions with accepted names.

A definition whose conversion webhook has an invalid CA bundle is not established.
"""

from __future__ import annotations

from pilothouse.extensions.controllers.definitions import DefinitionInformer
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.customresourcedefinitions.ca_bundle import ca_bundle_of
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, NAMES_ACCEPTED
from pilothouse.kinds.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.field import NOWHERE
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.ca_bundles import validate_ca_bundle

_ACCEPTED = Condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
_INVALID_CA_BUNDLE = Condition(ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")


class EstablishingController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None or not _is_due(definition):
            return
        if not _condition(definition).is_same_as(find_condition(definition, ESTABLISHED)):
            await self._writer.write(definition, _establish)


def _is_due(definition: Json) -> bool:
    return is_true(definition, NAMES_ACCEPTED) and not is_true(definition, ESTABLISHED)


def _establish(current: Json) -> None:
    if _is_due(current):
        set_condition(current, _condition(current))


def _condition(definition: Json) -> Condition:
    is_valid = not any(validate_ca_bundle(ca_bundle_of(definition["spec"]), NOWHERE))
    return _ACCEPTED if is_valid else _INVALID_CA_BUNDLE
