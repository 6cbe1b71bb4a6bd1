"""Validation of a MutatingAdmissionPolicy's variables and mutations, each an expression of its patch's type."""

from __future__ import annotations

from pilothouse.kube.admissionregistration.expressions import (
    APPLY_CONFIGURATION,
    JSON_PATCH,
    Types,
    validate_expression,
    validate_variable,
)
from pilothouse.kube.admissionregistration.match_resources import REINVOCATION_POLICIES
from pilothouse.kube.validation.fields import required_one_of
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json, items, text

_PATCHES: dict[str, tuple[str, Types]] = {
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION),
    "JSONPatch": ("jsonPatch", JSON_PATCH),
}


def validate_mutations(spec: Json, path: Path) -> Errors:
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
    for other in (name for name, _ in _PATCHES.values() if name != field):
        if mutation.get(other) is not None:
            yield invalid(path.child(other), f"{{{other}}}", f"must not be specified when patchType is {kind}")


def _validate_patch(compiler: AdmissionCompiler, expression: str, path: Path, *, params: bool, types: Types) -> Errors:
    if not expression:
        yield required(path)
        return
    may_use = Declarations(params=params, patch_types=True)
    yield from validate_expression(compiler, expression, path, declarations=may_use, types=types)
