"""One object as an author's function answered it: checked and copied, because the author may change it later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.stored_form import Keys
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.server_errors import InternalError


@dataclass(frozen=True, slots=True)
class Answer:
    key: str
    """Key in the mirror."""
    text: bytes
    """The answered object as JSON."""


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads answers about one resource. `on_read` sets defaults and drops unknown fields."""

    resource: Resource
    keys: Keys
    on_read: Callable[[Json], None] | None = None

    def read(self, obj: Any, function: str) -> Answer:
        """Return the answer. Raises InternalError, with the name of the function, for an invalid object."""
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
            raise self._refused(function, f"answered a value that is not an object: {type(obj).__name__}")
        for part in ("name", "namespace") if self.keys.namespaced else ("name",):
            value = (obj.get("metadata") or {}).get(part)
            if not value:
                which = f'the object "{name_of(obj)}"' if name_of(obj) else "an object"
                raise self._refused(function, f"answered {which} without metadata.{part}")
            if not isinstance(value, str):
                raise self._refused(function, f"answered an object whose metadata.{part} is not a string: {value!r}")
        try:
            return Answer(self.keys.object(namespace_of(obj), name_of(obj)), orjson.dumps(obj))
        except (BadRequest, TypeError) as error:
            raise self._refused(function, f'answered the object "{name_of(obj)}": {error}') from error

    def read_one(self, obj: Any, key: str, function: str) -> Answer:
        """Return the answer about the object at `key`. Raises InternalError for another object."""
        answer = self.read(obj, function)
        if answer.key != key:
            raise self._refused(function, f"answered {self._place(answer.key)} instead of {self._place(key)}")
        return answer

    def parse(self, answer: Answer) -> Json:
        """Return a new object of the resource's kind. Null metadata fields are dropped."""
        obj: Json = orjson.loads(answer.text)
        obj["kind"], obj["apiVersion"] = self.resource.names.kind, self.resource.kind.api_version
        obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value is not None}
        return obj

    def complete(self, obj: Json) -> None:
        """Complete an object as the registry does for objects of clients."""
        if self.on_read is not None:
            self.on_read(obj)

    def _place(self, key: str) -> str:
        return f'"{"/".join(filter(None, self.keys.names(key)))}"'

    def _refused(self, function: str, problem: str) -> InternalError:
        return InternalError.of(f"{function} of {self.resource.group_resource} {problem}")
