"""ValidatingAdmissionPolicies, and their status: what the type checker found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.admissionregistration.match_resources import PARAM_KIND
from pilothouse.kube.admissionregistration.policies import PolicyStrategy
from pilothouse.kube.admissionregistration.strategy import GROUP, resource_of
from pilothouse.kube.strategy import StatusSubresource, zero_value
from pilothouse.machinery.field import Errors, Path, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.conditions import validate_conditions

_KIND = GroupVersionKind(GROUP, "v1", "ValidatingAdmissionPolicy")


class ValidatingPolicyStrategy(PolicyStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        obj["status"] = zero_value(_KIND, "status")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        super().prepare_for_update(obj, old)

    def validate_content(self, obj: Json, path: Path) -> Errors:
        # Imported with the first policy: a start needs no expressions.
        from pilothouse.kube.admissionregistration.validations import validate_content

        return validate_content(obj, path)


class ValidatingPolicyStatusStrategy(StatusSubresource, ValidatingPolicyStrategy):
    reset_fields = ("spec", "metadata")
    resets_metadata = True

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return _validate_status(part(obj, "status"), root("status"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ValidatingPolicyStrategy.warnings_on_update(self, obj, old)


def _validate_status(status: Json, path: Path) -> Errors:
    warnings = path.child("typeChecking", "expressionWarnings")
    for position, warning in enumerate(items(status, "typeChecking", "expressionWarnings")):
        if not text(warning, "warning"):
            yield required(warnings.index(position).child("warning"))
        if not text(warning, "fieldRef").strip():
            yield required(warnings.index(position).child("fieldRef"))
    yield from validate_conditions(status.get("conditions"), path.child("conditions"))


_VALIDATIONS = Column(
    "Validations",
    lambda obj: len(items(obj, "spec", "validations")),
    type="integer",
    description="Validations indicates the number of validation rules defined in this configuration",
)

VALIDATING_ADMISSION_POLICIES = resource_of(
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    ValidatingPolicyStrategy(),
    [_VALIDATIONS, PARAM_KIND],
)
