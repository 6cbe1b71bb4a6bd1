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
    validate_variable,
)
from pilothouse.kube.admissionregistration.match_resources import REINVOCATION_POLICIES, param_kind_cell
from pilothouse.kube.admissionregistration.policies import PolicyStrategy
from pilothouse.kube.admissionregistration.rules import validate_mutating_operations
from pilothouse.kube.admissionregistration.strategy import (
    CATEGORIES,
    GROUP,
    STORED_MUTATING_VERSION,
)
from pilothouse.kube.parts import items, part, text
from pilothouse.kube.validation.fields import required_one_of
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json

_PATCHES: dict[str, tuple[str, Types]] = {
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION),
    "JSONPatch": ("jsonPatch", JSON_PATCH),
}


class MutatingPolicyStrategy(PolicyStrategy):
    def validate_constraints(self, spec: Json, path: Path) -> Errors:
        yield from super().validate_constraints(spec, path)
        rules, where = items(spec, "matchConstraints", "resourceRules"), path.child("matchConstraints", "resourceRules")
        yield from validate_mutating_operations(rules, where.child("operations"))

    def validate_content(self, obj: Json, path: Path) -> Errors:
        return _validate_content(part(obj, "spec"), path)


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
