"""Controllers that set one condition of a definition each.

- EstablishingController sets Established on definitions with accepted names, unless the conversion webhook has an
  invalid CA bundle.
- APIApprovalController sets KubernetesAPIApprovalPolicyConformant on definitions in protected groups.
- NonStructuralSchemaController sets NonStructuralSchema with the violations of a stored schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.extensions.controllers.definitions import DefinitionInformer, StatusWriter
from pilothouse.extensions.customresourcedefinitions import conditions
from pilothouse.kinds.conditions import Condition, find_condition, is_true, remove_condition, set_condition
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.field import NOWHERE, FieldError, invalid, root
from pilothouse.machinery.objects import Json, metadata, uid_of
from pilothouse.machinery.pem import validate_ca_bundle
from pilothouse.machinery.status_error import aggregate

_ACCEPTED = Condition(conditions.ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
_INVALID_CA_BUNDLE = Condition(
    conditions.ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
)


class EstablishingController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None or not _is_due(definition):
            return
        if not _condition(definition).is_same_as(find_condition(definition, conditions.ESTABLISHED)):
            await self._writer.write(definition, _establish)


def _is_due(definition: Json) -> bool:
    return is_true(definition, conditions.NAMES_ACCEPTED) and not is_true(definition, conditions.ESTABLISHED)


def _establish(current: Json) -> None:
    if _is_due(current):
        set_condition(current, _condition(current))


def _condition(definition: Json) -> Condition:
    is_valid = not any(validate_ca_bundle(conditions.ca_bundle_of(definition["spec"]), NOWHERE))
    return _ACCEPTED if is_valid else _INVALID_CA_BUNDLE


class APIApprovalController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter) -> None:
        self._definitions = definitions
        self._writer = writer

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None or not conditions.is_protected_group(definition["spec"]["group"]):
            return
        approval = conditions.approval_of(definition)
        status = "True" if approval.state is conditions.ApprovalState.APPROVED else "False"
        condition = Condition(conditions.API_APPROVED, status, approval.state.value, approval.reason)
        if not condition.is_same_as(find_condition(definition, conditions.API_APPROVED)):
            await self._writer.write(definition, lambda current: set_condition(current, condition))


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
        found = find_condition(definition, conditions.NON_STRUCTURAL_SCHEMA)
        if not (found is None if condition is None else condition.is_same_as(found)):
            await self._writer.write(definition, lambda current: _record(current, condition))
        self._checked[name] = looked_at


def condition_of(spec: Json) -> Condition | None:
    """Return the condition; None for structural schemas. The schema code is imported with the first definition."""
    from pilothouse.extensions.schema.definition.structure import unsupported_part

    for version in spec.get("versions") or ():
        if reason := unsupported_part(_schema(version)):
            message = f"failed to check validation schema for version {version['name']}: {reason}"
            return Condition(conditions.NON_STRUCTURAL_SCHEMA, "Unknown", "StructuralError", message)
    violations = [str(error) for error in _violations(spec)]
    return (
        Condition(conditions.NON_STRUCTURAL_SCHEMA, "True", "Violations", aggregate(violations)) if violations else None
    )


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
        remove_condition(current, conditions.NON_STRUCTURAL_SCHEMA)
    else:
        set_condition(current, condition)
