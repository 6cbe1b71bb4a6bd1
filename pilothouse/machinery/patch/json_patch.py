"""JSON patch (RFC 6902), with the departures from the RFC that kube-apiserver has.

A path that leads nowhere is an error, yet `replace` of a missing key adds it, `copy` of a missing key adds null and
`test` of a missing key for null succeeds. Indices may be negative and count from the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.govalue import json_type
from pilothouse.machinery.patch.errors import MalformedPatch, TooManyOperations
from pilothouse.machinery.patch.json_patch_run import PatchOperation, PatchRun
from pilothouse.machinery.patch.values import copied

MAX_OPERATIONS = 10_000
MAX_COPY_BYTES = 3 * 1024 * 1024

_FIELDS = ("op", "path", "from", "value")
_TEXTS = ("op", "path", "from")


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A decoded patch, which may be applied any number of times."""

    operations: tuple[PatchOperation, ...]
    strict_errors: tuple[str, ...] = ()
    """The complaints of strict decoding; whether they matter is for the request's fieldValidation to say."""

    def apply(self, document: Any, *, max_copy_bytes: int = MAX_COPY_BYTES) -> Any:
        """The patched document; `document` itself is used up. Raises PatchDoesNotApply."""
        run = PatchRun(document, max_copy_bytes)
        for operation in self.operations:
            run.apply(operation)
        return run.finished()


def decode(patch: Any, *, strict: bool = True) -> JsonPatch:
    """Reads a parsed JSON patch. Without `strict` the operations' members may have any type until they are used.

    Raises MalformedPatch and TooManyOperations.
    """
    if patch is not None and not isinstance(patch, list):
        raise _mismatch(patch, "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch", strict)
    steps = patch or []
    for step in steps:
        _check_types(step, strict)
    if len(steps) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(steps)}"
        raise TooManyOperations(why)
    operations = tuple(_operation(step or {}) for step in steps)
    return JsonPatch(operations, tuple(_unknown_fields(steps)) if strict else ())


def _check_types(step: Any, strict: bool) -> None:
    if step is None:
        return
    if not isinstance(step, dict):
        raise _mismatch(step, "handlers.jsonPatchOp" if strict else "jsonpatch.Operation", strict)
    for name, value in step.items():
        if strict and name in _TEXTS and value is not None and not isinstance(value, str):
            found = json_type(value)
            why = f"json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
            raise MalformedPatch(f"error decoding patch: {why}")


def _mismatch(value: Any, wanted: str, strict: bool) -> MalformedPatch:
    why = f"json: cannot unmarshal {json_type(value)} into Go value of type {wanted}"
    return MalformedPatch(f"error decoding patch: {why}" if strict else why)


def _operation(step: dict[str, Any]) -> PatchOperation:
    texts = {name: value for name, value in step.items() if name in _TEXTS and isinstance(value, str)}
    return PatchOperation(
        op=texts.get("op", "unknown"),
        path=texts.get("path"),
        source=texts.get("from"),
        value=copied(step.get("value")),
    )


def _unknown_fields(steps: list[Any]) -> Iterator[str]:
    for position, step in enumerate(steps):
        for name in step or ():
            if name not in _FIELDS:
                yield f"json patch unknown field {quote(f'[{position}].{name}')}"
