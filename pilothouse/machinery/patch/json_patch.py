"""JSON patch (RFC 6902) with kube-apiserver's deviations.

An unresolvable path is an error, but `replace` of a missing key adds it, `copy` of a missing key adds null, and `test`
of a missing key for null succeeds. Negative indices count from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.json import dump_spelled
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import json_type, quote
from pilothouse.machinery.objects import Json, deep_equal
from pilothouse.machinery.patch.interface import FailedTest, MalformedPatch, PatchDoesNotApply, TooManyOperations
from pilothouse.machinery.patch.json_pointer import ContainerKey, find_place
from pilothouse.machinery.patch.merge_patch import copied, sort_keys

MAX_OPERATIONS = 10_000
MAX_COPY_BYTES = 3 * 1024 * 1024

_FIELDS = ("op", "path", "from", "value")
_TEXTS = ("op", "path", "from")


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """Decoded patch; may be applied repeatedly."""

    operations: tuple[PatchOperation, ...]
    strict_errors: tuple[str, ...] = ()
    """Errors of strict decoding; the request's fieldValidation decides about them."""

    def apply(self, document: Any, *, max_copy_bytes: int = MAX_COPY_BYTES) -> Any:
        """Return the patched document; modifies `document`. Raises PatchDoesNotApply."""
        run = PatchRun(document, max_copy_bytes)
        for operation in self.operations:
            run.apply(operation)
        return run.finished()


def decode(patch: Any, *, strict: bool = True) -> JsonPatch:
    """Decode a parsed JSON patch. Without `strict`, members of operations may have any type until used.

    Raises MalformedPatch and TooManyOperations.
    """
    if patch is not None and not isinstance(patch, list):
        raise _mismatch(patch, "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch", strict)
    steps = patch or []
    for step in steps:
        _check_types(step, strict)
    if len(steps) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(steps)}"
        raise TooManyOperations(message)
    operations = tuple(_operation(step or {}) for step in steps)
    return JsonPatch(operations, tuple(_unknown_fields(steps)) if strict else ())


def _check_types(step: Any, strict: bool) -> None:
    if step is None:
        return
    if not isinstance(step, dict):
        raise _mismatch(step, "handlers.jsonPatchOp" if strict else "jsonpatch.Operation", strict)
    for name, value in step.items():
        if strict and name in _TEXTS and value is not None and not isinstance(value, str):
            problem = f"cannot unmarshal {json_type(value)} into Go struct field jsonPatchOp.{name} of type string"
            raise MalformedPatch(f"error decoding patch: json: {problem}")


def _mismatch(value: Any, expected: str, strict: bool) -> MalformedPatch:
    problem = f"json: cannot unmarshal {json_type(value)} into Go value of type {expected}"
    return MalformedPatch(f"error decoding patch: {problem}" if strict else problem)


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


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """Operation of a patch. A text is None if missing or not a string; a missing value equals null."""

    op: str
    path: str | None
    source: str | None
    value: Any


class PatchRun:
    """Application of a patch. `document` is modified in place, or replaced as a whole."""

    def __init__(self, document: Any, max_copy_bytes: int) -> None:
        self.document = document
        self._max_copy_bytes = max_copy_bytes
        self._opened: dict[int, Json] = {}
        self._copied_bytes = 0
        self._steps: dict[str, Callable[[PatchOperation], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "test": self._test,
            "copy": self._copy,
        }

    def apply(self, operation: PatchOperation) -> None:
        checkpoint()
        step = self._steps.get(operation.op)
        if step is None:
            raise PatchDoesNotApply(f"Unexpected kind: {operation.op}")
        step(operation)

    def finished(self) -> Any:
        """Return the document. As upstream, the keys of each accessed object are sorted."""
        for opened in self._opened.values():
            sort_keys(opened)
        if isinstance(self.document, dict):
            sort_keys(self.document)
        return self.document

    def _find(self, path: str, missing: str) -> ContainerKey:
        return find_place(self.document, path, missing, self._opened)

    def _add(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        location = self._find(path, f"add operation does not apply: doc is missing path: {quote(path)}")
        location.add(copied(operation.value), f"error in add for path: '{path}'")

    def _remove(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        location = self._find(path, f"remove operation does not apply: doc is missing path: {quote(path)}")
        location.remove(f"error in remove for path: '{path}'")

    def _replace(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        if path == "":
            if not isinstance(operation.value, (dict, list)):
                raise PatchDoesNotApply("replace operation value must be object or array")
            self.document = copied(operation.value)
            return
        location = self._find(path, f"replace operation does not apply: doc is missing path: {path}")
        location.replace(copied(operation.value), f"replace operation does not apply: doc is missing key: {path}")

    def _move(self, operation: PatchOperation) -> None:
        source = _text(operation, "from")
        location = self._find(source, f"move operation does not apply: doc is missing from path: {source}")
        value = location.get(f"error in move for path: '{location.key}'")
        location.remove(f"error in move for path: '{location.key}'")
        path = _text(operation, "path")
        location = self._find(path, f"move operation does not apply: doc is missing destination path: {path}")
        location.add(value, f"error in move for path: '{path}'")

    def _copy(self, operation: PatchOperation) -> None:
        source = _text(operation, "from")
        location = self._find(source, f"copy operation does not apply: doc is missing from path: {source}")
        value = location.get(f"error in copy for from: '{source}'")
        path = _text(operation, "path")
        location = self._find(path, f"copy operation does not apply: doc is missing destination path: {path}")
        # Limit the total size of copies: copies of copies grow exponentially.
        self._copied_bytes += 0 if value is None else len(dump_spelled(value))
        if self._copied_bytes > self._max_copy_bytes > 0:
            problem = "Unable to complete the copy, the accumulated size increase of copy is"
            raise PatchDoesNotApply(f"{problem} {self._copied_bytes}, exceeding the limit {self._max_copy_bytes}")
        location.add(copied(value), "error while adding value during copy")

    def _test(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        if path == "":
            actual = self.document
        else:
            location = self._find(path, f"test operation does not apply: is missing path: {path}")
            actual = location.get(f"error in test for path: '{path}'")
        if not deep_equal(actual, operation.value):
            raise FailedTest(f"testing value {path} failed: test failed")
        self._opened |= {id(part): part for part in _objects_in(actual)}


def _objects_in(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects_in(part)


def _text(operation: PatchOperation, name: str) -> str:
    text = operation.path if name == "path" else operation.source
    if text is None:
        raise PatchDoesNotApply(f"{operation.op} operation failed to decode {name}: missing value")
    return text
