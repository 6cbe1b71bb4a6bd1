"""MutatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.admissionregistration.expressions import (
    APPLY_CONFIGURATION,
    JSON_PATCH,
    Types,
    validate_expression,
    validate_match_conditions,
    validate_variable,
)
from pilothouse.kube.admissionregistration.match_resources import (
    REINVOCATION_POLICIES,
    param_kind_cell,
    validate_failure_policy,
    validate_match_constraints,
    validate_param_kind,
)
from pilothouse.kube.admissionregistration.rules import validate_mutating_operations
from pilothouse.kube.admissionregistration.strategy import (
    CATEGORIES,
    GROUP,
    STORED_MUTATING_VERSION,
    AdmissionRegistrationStrategy,
)
from pilothouse.kube.admissionregistration.validating_policies import default_policy, same_conditions
from pilothouse.kube.parts import items, part, text
from pilothouse.kube.validation.fields import required_one_of
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json

_PATCHES: dict[str, tuple[str, Types]] = {
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION),
    "JSONPatch": ("jsonPatch", JSON_PATCH),
}


class MutatingPolicyStrategy(AdmissionRegistrationStrategy):
    def default(self, obj: Json) -> None:
        default_policy(obj)

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
        rules, where = items(spec, "matchConstraints", "resourceRules"), path.child("matchConstraints", "resourceRules")
        yield from validate_mutating_operations(rules, where.child("operations"))
        if conditions:
            where = path.child("matchConditions")
            yield from validate_match_conditions(items(spec, "matchConditions"), where, params=params is not None)
        yield from _validate_content(spec, path)


def _validate_content(spec: Json, path: Path) -> Errors:
    compiler, params = AdmissionCompiler(composed=True), spec.get("paramKind") is not None
    for position, variable in enumerate(items(spec, "variables")):
        yield from validate_variable(compiler, variable, path.child("variables").index(position), params=params)
    if not items(spec, "mutations"):
        yield required(path.child("mutations"), "mutations must contain at least one item")
    for position, mutation in enumerate(items(spec, "mutations")):
        yield from _validate_mutation(compiler, mutation, path.child("mutations").index(position), params=params)
    policy = text(spec, "reinvocationPolicy")
    yield from required_one_of(policy, path.child("reinvocationPolicy"), REINVOCATION_POLICIES)


def _validate_mutation(compiler: AdmissionCompiler, mutation: Json, path: Path, *, params: bool) -> Errors:
    kind = text(mutation, "patchType")
    if not kind:
        yield required(path.child("patchType"))
        return
    if kind not in _PATCHES:
        yield not_supported(path.child("patchType"), kind, sorted(_PATCHES))
        return
    field, types = _PATCHES[kind]
    patch = mutation.get(field)
    if patch is None:
        yield required(path.child(field), f"must be specified when patchType is {kind}")
    else:
        where = path.child(field, "expression")
        yield from _validate_patch(compiler, text(patch, "expression").strip(), where, params=params, types=types)
    for other in _others(field):
        if mutation.get(other) is not None:
            yield invalid(path.child(other), f"{{{other}}}", f"must not be specified when patchType is {kind}")


def _others(field: str) -> Iterable[str]:
    return (name for name, _ in _PATCHES.values() if name != field)


def _validate_patch(compiler: AdmissionCompiler, expression: str, path: Path, *, params: bool, types: Types) -> Errors:
    if not expression:
        yield required(path)
        return
    may_use = Declarations(params=params, patch_types=True)
    yield from validate_expression(compiler, expression, path, declarations=may_use, types=types)


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
