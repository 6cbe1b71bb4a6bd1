"""A compiled mutating policy: match conditions, and mutations by JSON patches or apply configurations.

An apply configuration is merged as in server-side apply, without field ownership.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import orjson

from pilothouse.apiserver.admission.interface import ServedForm
from pilothouse.apiserver.admission.policy.invocations import Composition
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.evaluation import BUDGET, OUT_OF_BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.machinery.apply.atoms import Atom, Unkeyed
from pilothouse.machinery.apply.merge import merge
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.cel.interpreter.values import Duration, Optional, Struct, Timestamp, from_key
from pilothouse.machinery.cel.library.conversions import text_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch import json_patch
from pilothouse.machinery.patch.interface import FailedTest, PatchError
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import InternalError


class MutationFailed(Exception):
    """A failed mutation; subject to the failure policy."""

    @property
    def error_type(self) -> str:
        """Return the metric label of the error."""
        if str(self).startswith("compilation"):
            return "compile_error"
        if str(self).startswith(OUT_OF_BUDGET):
            return "out_of_budget"
        return "invalid_error"


_Patch: TypeAlias = Callable[[ServedForm, Json, Any], Json]


@dataclass(frozen=True, slots=True)
class Mutation:
    expression: Expression
    patch: _Patch
    variables: Mapping[str, Expression]

    async def mutated(
        self, form: ServedForm, obj: Json, variables: Mapping[str, Any], authorizations: Authorizations
    ) -> Json:
        """Return the mutated copy. Raises MutationFailed or InternalError."""
        if self.expression.program is None:
            raise MutationFailed(self.expression.problem)
        evaluator = ExpressionEvaluator(Activation(variables, self.variables), authorizations, BUDGET)
        try:
            evaluation = await evaluator.evaluate(self.expression)
        except OutOfBudget as error:
            raise MutationFailed(str(error)) from None
        if evaluation.error:
            raise MutationFailed(evaluation.error)
        return self.patch(form, obj, evaluation.value)


class Mutator:
    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        self.reinvocable = spec.get("reinvocationPolicy") == "IfNeeded"
        self._composition = Composition(policy)
        self.mutations = [self._mutation(each) for each in spec.get("mutations") or ()]

    async def is_about(self, seen: VersionedAttributes, params: Json | None, authorizations: Authorizations) -> bool:
        """Return whether the match conditions hold. Raises MutationFailed."""
        try:
            return await self._composition.is_about(seen, params, authorizations)
        except MatchFailed as error:
            raise MutationFailed(str(error)) from None

    def _mutation(self, mutation: Json) -> Mutation:
        by_configuration = mutation.get("patchType") == "ApplyConfiguration"
        patch, kind = (configured, "Object") if by_configuration else (json_patched, "list(JSONPatch)")
        part = mutation.get("applyConfiguration" if by_configuration else "jsonPatch") or {}
        declarations = self._composition.declarations(patch_types=True)
        expression = compiled(self._composition.compiler, part.get("expression") or "", declarations, types=(kind,))
        return Mutation(expression, patch, self._composition.variables)


def configured(form: ServedForm, obj: Json, configuration: Any) -> Json:
    """Merge `configuration`, the value of the expression, into the object. Raises MutationFailed."""
    if wrong := [*type_mismatches(configuration, "Object")]:
        raise MutationFailed("type mismatch: " + "\n".join(wrong))
    try:
        config: Json = as_json(configuration)
    except NotJson as error:
        raise MutationFailed(f"invalid return type: {error}") from None
    config |= {"apiVersion": form.kind.api_version, "kind": form.kind.kind}
    return _merged(form.atom(), obj, config)


def _merged(atom: Atom, obj: Json, config: Json) -> Json:
    try:
        check(atom, config)
    except TypedError as error:
        raise _apply_failed(f"failed to convert patch object to typed object: {error}") from None
    if atomics := [*_atomics(atom, config, "")]:
        reason = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise _apply_failed(f"invalid ApplyConfiguration: {reason}")
    try:
        check(atom, obj, allow_duplicates=True)
    except TypedError as error:
        raise _apply_failed(f"failed to convert original object to typed object: {error}") from None
    try:
        merged: Json = merge(atom, obj, config)
    except Unkeyed as error:
        raise _apply_failed(f"failed to merge patch: {error}") from None
    return merged


def _apply_failed(reason: str) -> MutationFailed:
    return MutationFailed(f"error applying patch: {reason}")


def _atomics(atom: Atom, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic values. Applying a partial atomic value would drop its other fields."""
    if isinstance(value, dict) and atom.map is not None:
        if atom.map.atomic:
            yield path
        for name, each in value.items():
            if name in atom.map.fields:
                yield from _atomics(atom.map.fields[name], each, f"{path}.{name}")
    if isinstance(value, list) and atom.list is not None:
        if not atom.list.associative:
            yield path
        for index, each in enumerate(value):
            yield from _atomics(atom.list.element, each, f"{path}[{index}]")


_UNMARSHALABLE = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"


def json_patched(form: ServedForm, obj: Json, patch: Any) -> Json:
    """Apply `patch`, the value of the expression. Raises MutationFailed or InternalError."""
    steps = [_step(operation) for operation in patch]
    try:
        patched: Json = json_patch.decode(steps, strict=False).apply(orjson.loads(orjson.dumps(obj)))
    except FailedTest:
        # A failed test operation means that the patch does not apply to this object.
        return obj
    except PatchError as error:
        raise MutationFailed(f"JSON Patch: {error}") from None
    _check(form, patched)
    return patched


def _step(operation: Any) -> Json:
    fields = operation.fields
    step = {name: fields[name] for name in ("op", "path", "from") if fields.get(name)}
    for name, value in step.items():
        if not isinstance(value, str):
            raise MutationFailed(f"unexpected type {type(value).__name__} for JSONPatchType '{name}' field")
    step.setdefault("op", "")
    step.setdefault("path", "")
    return step | ({"value": _value(fields["value"])} if "value" in fields else {})


def _value(value: Any) -> Any:
    if isinstance(value, Struct) and (wrong := [*type_mismatches(value, value.type)]):
        raise MutationFailed("type mismatch: " + "\n".join(wrong))
    try:
        return as_json(value)
    except NotJson as error:
        raise MutationFailed(f"{_UNMARSHALABLE}: {error}") from None


def _check(form: ServedForm, patched: Json) -> None:
    try:
        unknown = form.unknown_fields(patched)
    except DecodeError as error:
        raise InternalError.of(str(error)) from None
    if unknown:
        raise InternalError.of(f"strict decoding error: {', '.join(unknown)}")


class NotJson(ValueError):
    """The value has no JSON representation."""


def as_json(value: Any) -> Any:
    """Convert a CEL value to JSON. Raises NotJson."""
    match value:
        case Struct():
            return {name: as_json(each) for name, each in value.fields.items()}
        case dict():
            return {_key(from_key(name)): as_json(each) for name, each in value.items()}
        case list():
            return [as_json(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return text_of(value)
        case Optional():
            return as_json(value.value)
        case None | bool() | int() | float() | str():
            return value
    raise NotJson(f"{type(value).__name__} is no value of an object")


def _key(name: Any) -> str:
    if not isinstance(name, str):
        raise NotJson(f"map key {quote(str(name))} is of type {type(name).__name__}, not string")
    return name


def type_mismatches(value: Any, path: str) -> Iterator[str]:
    """Yield a message for each object of a wrong type, such as `Object.spec{metadata: …}` in `spec`."""
    match value:
        case Struct():
            if value.type != path:
                reason = "which matches field name path from root Object type"
                yield f"unexpected type name {quote(value.type)}, expected {quote(path)}, {reason}"
            for name, each in value.fields.items():
                yield from type_mismatches(each, f"{path}.{name}")
        case list():
            for each in value:
                yield from type_mismatches(each, path)
        case dict():
            for each in value.values():
                yield from type_mismatches(each, path)
