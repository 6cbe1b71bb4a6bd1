"""Mutations by JSON patches."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apiserver.admission.equivalents import ServedForm
from pilothouse.apiserver.admission.policy.mutating.errors import MutationFailed
from pilothouse.apiserver.admission.policy.mutating.patch_values import NotJson, as_json, type_mismatches
from pilothouse.machinery.cel.interpreter.values import Struct
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch import json_patch
from pilothouse.machinery.patch.interface import FailedTest, PatchError
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import InternalError

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
