"""ValidatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.admissionregistration.expressions import validate_match_conditions
from pilothouse.kube.admissionregistration.match_resources import (
    default_match_resources,
    param_kind_cell,
    validate_failure_policy,
    validate_match_constraints,
    validate_param_kind,
)
from pilothouse.kube.admissionregistration.policy_status import validate_policy_status
from pilothouse.kube.admissionregistration.strategy import CATEGORIES, GROUP, AdmissionRegistrationStrategy
from pilothouse.kube.admissionregistration.validations import validate_content
from pilothouse.kube.parts import items, part
from pilothouse.kube.spec_and_status import carry_over, zero_value
from pilothouse.kube.strategy import keep_metadata_for_status
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import semantically_equal

_KIND = GroupVersionKind(GROUP, "v1", "ValidatingAdmissionPolicy")


def default_policy(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("failurePolicy") is None:
        spec["failurePolicy"] = "Fail"
    default_match_resources(spec.get("matchConstraints"))


def same_conditions(obj: Json, old: Json) -> bool:
    """Whether an update leaves alone all that decides if the match conditions are valid."""
    new_spec, old_spec = part(obj, "spec"), part(old, "spec")
    fields = ("paramKind", "matchConditions")
    return all(semantically_equal(new_spec.get(field), old_spec.get(field)) for field in fields)


class ValidatingPolicyStrategy(AdmissionRegistrationStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def default(self, obj: Json) -> None:
        default_policy(obj)

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        obj["status"] = zero_value(_KIND, "status")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        super().prepare_for_update(obj, old)

    def validate(self, obj: Json) -> Errors:
        return self._validate(obj, conditions=True)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._validate(obj, conditions=not same_conditions(obj, old))

    def _validate(self, obj: Json, *, conditions: bool) -> Errors:
        yield from self.validate_metadata(obj)
        spec, path = part(obj, "spec"), root("spec")
        params = spec.get("paramKind")
        yield from validate_failure_policy(spec.get("failurePolicy"), path.child("failurePolicy"))
        if params is not None:
            yield from validate_param_kind(params, path.child("paramKind"))
        yield from validate_match_constraints(spec.get("matchConstraints"), path.child("matchConstraints"))
        if conditions:
            where = path.child("matchConditions")
            yield from validate_match_conditions(items(spec, "matchConditions"), where, params=params is not None)
        yield from validate_content(obj, path)


class ValidatingPolicyStatusStrategy(ValidatingPolicyStrategy):
    reset_fields = ("spec", "metadata")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        keep_metadata_for_status(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return validate_policy_status(part(obj, "status"), root("status"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self.warnings_on_create(obj)


VALIDATING_ADMISSION_POLICIES = Resource(
    names=Names("validatingadmissionpolicies", kind="ValidatingAdmissionPolicy", categories=CATEGORIES),
    strategy=ValidatingPolicyStrategy(),
    group=GROUP,
    columns=[
        NAME,
        Column(
            "Validations",
            lambda obj: len(items(obj, "spec", "validations")),
            type="integer",
            description="Validations indicates the number of validation rules defined in this configuration",
        ),
        Column(
            "ParamKind",
            param_kind_cell,
            description="ParamKind specifies the kind of resources used to parameterize this policy",
        ),
        AGE,
    ],
)
