"""MutatingAdmissionPolicies."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.admissionregistration.match_resources import param_kind_cell
from pilothouse.kube.admissionregistration.policies import PolicyStrategy
from pilothouse.kube.admissionregistration.rules import validate_mutating_operations
from pilothouse.kube.admissionregistration.strategy import (
    CATEGORIES,
    GROUP,
    STORED_MUTATING_VERSION,
)
from pilothouse.machinery.field import Errors, Path
from pilothouse.machinery.nested_fields import items, part
from pilothouse.machinery.objects import Json


class MutatingPolicyStrategy(PolicyStrategy):
    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        yield from super().validate_constraints(spec, path)
        rules, where = items(spec, "matchConstraints", "resourceRules"), path.child("matchConstraints", "resourceRules")
        yield from validate_mutating_operations(rules, where.child("operations"))

    def validate_content(self, obj: Json, path: Path) -> Errors:
        # Imported with the first policy: a start needs no expressions.
        from pilothouse.kube.admissionregistration.mutations import validate_mutations

        return validate_mutations(part(obj, "spec"), path)


MUTATING_ADMISSION_POLICIES = Resource(
    names=Names("mutatingadmissionpolicies", kind="MutatingAdmissionPolicy", categories=CATEGORIES),
    strategy=MutatingPolicyStrategy(),
    group=GROUP,
    version=STORED_MUTATING_VERSION,
    columns=[
        NAME,
        Column(
            "Mutations",
            lambda obj: len(items(obj, "spec", "mutations")),
            type="integer",
            description="Mutation indicates the number of mutations rules defined in this configuration",
        ),
        Column(
            "ParamKind",
            param_kind_cell,
            description="ParamKind specifies the kind of resources used to parameterize this policy",
        ),
        AGE,
    ],
)
