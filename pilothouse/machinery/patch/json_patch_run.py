"""The six operations of a JSON patch, applied one after the other to one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.json import dump_spelled
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.equality import deep_equal
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.errors import FailedTest, PatchDoesNotApply
from pilothouse.machinery.patch.json_pointer import ContainerKey, find_place
from pilothouse.machinery.patch.values import copied, sort_keys


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One step. A text is None when it is missing or no string; a missing value and null are the same."""

    op: str
    path: str | None
    source: str | None
    value: Any


class PatchRun:
    """A patch under way. `document` is changed in place, or swapped when an operation replaces the whole of it."""

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
        """The document. The keys of each object that was looked into are sorted, as upstream's are."""
        for opened in self._opened.values():
            sort_keys(opened)
        if isinstance(self.document, dict):
            sort_keys(self.document)
        return self.document

    def _find(self, path: str, missing: str) -> ContainerKey:
        return find_place(self.document, path, missing, self._opened)

    def _add(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        place = self._find(path, f"add operation does not apply: doc is missing path: {quote(path)}")
        place.add(copied(operation.value), f"error in add for path: '{path}'")

    def _remove(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        place = self._find(path, f"remove operation does not apply: doc is missing path: {quote(path)}")
        place.remove(f"error in remove for path: '{path}'")

    def _replace(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        if path == "":
            if not isinstance(operation.value, (dict, list)):
                raise PatchDoesNotApply("replace operation value must be object or array")
            self.document = copied(operation.value)
            return
        place = self._find(path, f"replace operation does not apply: doc is missing path: {path}")
        place.replace(copied(operation.value), f"replace operation does not apply: doc is missing key: {path}")

    def _move(self, operation: PatchOperation) -> None:
        source = _text(operation, "from")
        place = self._find(source, f"move operation does not apply: doc is missing from path: {source}")
        value = place.get(f"error in move for path: '{place.key}'")
        place.remove(f"error in move for path: '{place.key}'")
        path = _text(operation, "path")
        place = self._find(path, f"move operation does not apply: doc is missing destination path: {path}")
        place.add(value, f"error in move for path: '{path}'")

    def _copy(self, operation: PatchOperation) -> None:
        source = _text(operation, "from")
        place = self._find(source, f"copy operation does not apply: doc is missing from path: {source}")
        value = place.get(f"error in copy for from: '{source}'")
        path = _text(operation, "path")
        place = self._find(path, f"copy operation does not apply: doc is missing destination path: {path}")
        self._account(value)
        place.add(copied(value), "error while adding value during copy")

    def _test(self, operation: PatchOperation) -> None:
        path = _text(operation, "path")
        if path == "":
            found = self.document
        else:
            place = self._find(path, f"test operation does not apply: is missing path: {path}")
            found = place.get(f"error in test for path: '{path}'")
        if not deep_equal(found, operation.value):
            raise FailedTest(f"testing value {path} failed: test failed")
        self._opened |= {id(part): part for part in _objects_in(found)}

    def _account(self, value: Any) -> None:
        """Copies of copies grow without bound; their total size does not."""
        self._copied_bytes += 0 if value is None else len(dump_spelled(value))
        if self._copied_bytes > self._max_copy_bytes > 0:
            why = "Unable to complete the copy, the accumulated size increase of copy is"
            raise PatchDoesNotApply(f"{why} {self._copied_bytes}, exceeding the limit {self._max_copy_bytes}")


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
