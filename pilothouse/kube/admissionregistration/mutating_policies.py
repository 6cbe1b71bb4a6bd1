"""MutatingAdmissionPolicies."""

from __future__ import annotations

from pilothouse.apiserver.registry.table import Column
from pilothouse.kube.admissionregistration.match_resources import PARAM_KIND
from pilothouse.kube.admissionregistration.policies import PolicyStrategy
from pilothouse.kube.admissionregistration.rules import validate_mutating_operations
from pilothouse.kube.admissionregistration.strategy import STORED_MUTATING_VERSION, resource_of
from pilothouse.machinery.field import Errors, Path
from pilothouse.machinery.objects import Json, items, part


class MutatingPolicyStrategy(PolicyStrategy):
    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        yield from super().validate_constraints(spec, path)
        rules, where = items(spec, "matchConstraints", "resourceRules"), path.child("matchConstraints", "resourceRules")
        yield from validate_mutating_operations(rules, where.child("operations"))

    def validate_content(self, obj: Json, path: Path) -> Errors:
        # Imported with the first policy: a start needs no expressions.
        from pilothouse.kube.admissionregistration.mutations import validate_mutations

        return validate_mutations(part(obj, "spec"), path)


_MUTATIONS = Column(
    "Mutations",
    lambda obj: len(items(obj, "spec", "mutations")),
    type="integer",
    description="Mutation indicates the number of mutations rules defined in this configuration",
)

MUTATING_ADMISSION_POLICIES = resource_of(
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
    MutatingPolicyStrategy(),
    [_MUTATIONS, PARAM_KIND],
    STORED_MUTATING_VERSION,
)
