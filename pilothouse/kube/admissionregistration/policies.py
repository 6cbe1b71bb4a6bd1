"""The strategy that validating and mutating admission policies share: all but what they do to a matching object."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pilothouse.kube.admissionregistration.match_resources import (
    default_match_resources,
    validate_failure_policy,
    validate_match_constraints,
    validate_param_kind,
)
from pilothouse.kube.admissionregistration.strategy import AdmissionRegistrationStrategy
from pilothouse.machinery.field import Errors, Path, root
from pilothouse.machinery.objects import Json, items, part
from pilothouse.machinery.validation.immutable import semantically_equal


class PolicyStrategy(AdmissionRegistrationStrategy):
    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        default_match_resources(spec.get("matchConstraints"))

    def validate_configuration(self, obj: Json) -> Errors:
        return self._validate(obj, conditions=True)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._validate(obj, conditions=not _same_conditions(obj, old))

    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        return validate_match_constraints(spec.get("matchConstraints"), path.child("matchConstraints"))

    @abstractmethod
    def validate_content(self, obj: Json, path: Path) -> Errors:
        """Yield the errors in what the policy does to an object that matches; `path` is that of the spec."""

    def _validate(self, obj: Json, *, conditions: bool) -> Errors:
        yield from self.validate_metadata(obj)
        spec, path = part(obj, "spec"), root("spec")
        params = spec.get("paramKind")
        yield from validate_failure_policy(spec.get("failurePolicy"), path.child("failurePolicy"))
        if params is not None:
            yield from validate_param_kind(params, path.child("paramKind"))
        yield from self.validate_constraints(spec, path)
        if conditions:
            yield from _validate_conditions(items(spec, "matchConditions"), path, params=params is not None)
        yield from self.validate_content(obj, path)


def _validate_conditions(conditions: Sequence[Json], path: Path, *, params: bool) -> Errors:
    # Imported with the first policy: a start needs no expressions.
    from pilothouse.kube.admissionregistration.expressions import validate_match_conditions

    return validate_match_conditions(conditions, path.child("matchConditions"), params=params)


def _same_conditions(obj: Json, old: Json) -> bool:
    """Whether an update leaves alone all that decides if the match conditions are valid."""
    new_spec, old_spec = part(obj, "spec"), part(old, "spec")
    fields = ("paramKind", "matchConditions")
    return all(semantically_equal(new_spec.get(field), old_spec.get(field)) for field in fields)
