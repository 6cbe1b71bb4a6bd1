"""The non-structural schema controller: sets NonStructuralSchema with the violations of a stored schema."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.extensions.controllers.definitions import DefinitionInformer
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.customresourcedefinitions.conditions import NON_STRUCTURAL_SCHEMA
from pilothouse.kinds.conditions import Condition, find_condition, remove_condition, set_condition
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.field import FieldError, invalid, root
from pilothouse.machinery.objects import Json, metadata, uid_of
from pilothouse.machinery.status_error import aggregate


class NonStructuralSchemaController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer
        self._checked: dict[str, tuple[str, int]] = {}
        """Definition name → (UID, generation) of the last check; status changes need no new check."""

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None:
            self._checked.pop(name, None)
            return
        looked_at = (uid_of(definition), metadata(definition).get("generation") or 0)
        if self._checked.get(name) == looked_at:
            return
        await yield_to_loop()  # yield: at the start all definitions arrive at once
        condition = condition_of(definition["spec"])
        found = find_condition(definition, NON_STRUCTURAL_SCHEMA)
        if not (found is None if condition is None else condition.is_same_as(found)):
            await self._writer.write(definition, lambda current: _record(current, condition))
        self._checked[name] = looked_at


def condition_of(spec: Json) -> Condition | None:
    """Return the condition; None for structural schemas. The schema code is imported with the first definition."""
    from pilothouse.extensions.schema.definition.structure import unsupported_part

    for version in spec.get("versions") or ():
        if why := unsupported_part(_schema(version)):
            message = f"failed to check validation schema for version {version['name']}: {why}"
            return Condition(NON_STRUCTURAL_SCHEMA, "Unknown", "StructuralError", message)
    violations = [str(error) for error in _violations(spec)]
    return Condition(NON_STRUCTURAL_SCHEMA, "True", "Violations", aggregate(violations)) if violations else None


def _schema(version: Json) -> Json:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _violations(spec: Json) -> Iterator[FieldError]:
    from pilothouse.extensions.schema.definition.structure import validate_structural

    if spec.get("preserveUnknownFields"):
        yield invalid(root("spec", "preserveUnknownFields"), True, "must be false")
    for position, version in enumerate(spec.get("versions") or ()):
        if (version.get("schema") or {}).get("openAPIV3Schema") is not None:
            path = root("spec", "versions").index(position).child("schema", "openAPIV3Schema")
            yield from validate_structural(_schema(version), path)


def _record(current: Json, condition: Condition | None) -> None:
    if condition is None:
        remove_condition(current, NON_STRUCTURAL_SCHEMA)
    else:
        set_condition(current, condition)
