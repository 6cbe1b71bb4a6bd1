"""One object as an author's function answered it: checked, and copied at once, because it stays the author's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.apiserver.registry.keys import Keys
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.server_errors import InternalError


@dataclass(frozen=True, slots=True)
class Answer:
    key: str
    """Where the object lives in the mirror."""
    text: bytes
    """The object as JSON, as it was answered."""


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads what is said about the objects of one resource. `on_read` fills in defaults and drops unknown fields."""

    resource: Resource
    keys: Keys
    on_read: Callable[[Json], None] | None = None

    def read(self, obj: Any, function: str) -> Answer:
        """Raises InternalError, which names the function, when that is no object of the resource."""
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
            raise self._refused(function, f"answered something that is no object: {type(obj).__name__}")
        for part in ("name", "namespace") if self.keys.namespaced else ("name",):
            found = (obj.get("metadata") or {}).get(part)
            if not found:
                which = f'the object "{name_of(obj)}"' if name_of(obj) else "an object"
                raise self._refused(function, f"answered {which} without metadata.{part}")
            if not isinstance(found, str):
                raise self._refused(function, f"answered an object whose metadata.{part} is no text: {found!r}")
        try:
            return Answer(self.keys.object(namespace_of(obj), name_of(obj)), orjson.dumps(obj))
        except (BadRequest, TypeError) as error:
            raise self._refused(function, f'answered the object "{name_of(obj)}": {error}') from error

    def read_one(self, obj: Any, key: str, function: str) -> Answer:
        """The same where only the object at `key` is an answer."""
        answer = self.read(obj, function)
        if answer.key != key:
            raise self._refused(function, f"answered {self._place(answer.key)} instead of {self._place(key)}")
        return answer

    def parse(self, answer: Answer) -> Json:
        """A fresh object of the resource's kind, without the parts of its metadata that are null."""
        obj: Json = orjson.loads(answer.text)
        obj["kind"], obj["apiVersion"] = self.resource.names.kind, self.resource.kind.api_version
        obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not None}
        return obj

    def complete(self, obj: Json) -> None:
        """Gives an object the form in which the registry stores those that clients send."""
        if self.on_read is not None:
            self.on_read(obj)

    def _place(self, key: str) -> str:
        return f'"{"/".join(filter(None, self.keys.names(key)))}"'

    def _refused(self, function: str, why: str) -> InternalError:
        return InternalError.of(f"{function} of {self.resource.group_resource} {why}")
