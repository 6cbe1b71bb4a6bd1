"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.admissionregistration import match_resources, strategy
from pilothouse.kube.strategy import StatusSubresource, zero_value
from pilothouse.machinery.field import Errors, Path, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import semantically_equal

_KIND = GroupVersionKind(strategy.GROUP, "v1", "ValidatingAdmissionPolicy")


class PolicyStrategy(strategy.AdmissionRegistrationStrategy):
    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        match_resources.default_match_resources(spec.get("matchConstraints"))

    def validate_configuration(self, obj: Json) -> Errors:
        return self._validate(obj, conditions=True)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        new_spec, old_spec = part(obj, "spec"), part(old, "spec")
        fields = ("paramKind", "matchConditions")
        return self._validate(
            obj, conditions=not all(semantically_equal(new_spec.get(field), old_spec.get(field)) for field in fields)
        )

    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        return match_resources.validate_match_constraints(spec.get("matchConstraints"), path.child("matchConstraints"))

    @abstractmethod
    def validate_content(self, obj: Json, path: Path) -> Errors:
        """Yield errors of validations or mutations; `path` is the path of the spec."""

    def _validate(self, obj: Json, *, conditions: bool) -> Errors:
        yield from self.validate_metadata(obj)
        spec, path = part(obj, "spec"), root("spec")
        params = spec.get("paramKind")
        yield from match_resources.validate_failure_policy(spec.get("failurePolicy"), path.child("failurePolicy"))
        if params is not None:
            yield from match_resources.validate_param_kind(params, path.child("paramKind"))
        yield from self.validate_constraints(spec, path)
        if conditions:
            yield from _validate_conditions(items(spec, "matchConditions"), path, params=params is not None)
        yield from self.validate_content(obj, path)


def _validate_conditions(conditions: Sequence[Json], path: Path, *, params: bool) -> Errors:
    # Imported with the first policy: a start needs no expressions.
    from pilothouse.kube.admissionregistration.policy_contents import validate_match_conditions

    return validate_match_conditions(conditions, path.child("matchConditions"), params=params)


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
        from pilothouse.kube.admissionregistration.policy_contents import validate_content

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

VALIDATING_ADMISSION_POLICIES = strategy.resource_of(
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    ValidatingPolicyStrategy(),
    [_VALIDATIONS, match_resources.PARAM_KIND],
)


class MutatingPolicyStrategy(PolicyStrategy):
    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        yield from super().validate_constraints(spec, path)
        rules, where = items(spec, "matchConstraints", "resourceRules"), path.child("matchConstraints", "resourceRules")
        yield from match_resources.validate_mutating_operations(rules, where.child("operations"))

    def validate_content(self, obj: Json, path: Path) -> Errors:
        # Imported with the first policy: a start needs no expressions.
        from pilothouse.kube.admissionregistration.policy_contents import validate_mutations

        return validate_mutations(part(obj, "spec"), path)


_MUTATIONS = Column(
    "Mutations",
    lambda obj: len(items(obj, "spec", "mutations")),
    type="integer",
    description="Mutation indicates the number of mutations rules defined in this configuration",
)

MUTATING_ADMISSION_POLICIES = strategy.resource_of(
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
    MutatingPolicyStrategy(),
    [_MUTATIONS, match_resources.PARAM_KIND],
    strategy.STORED_MUTATING_VERSION,
)
