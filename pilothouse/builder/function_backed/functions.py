"""Calls of the author's functions, with errors mapped to API errors.

Returned objects are checked and copied, because the author may change them later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import orjson

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.stored_form import Keys
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, MethodNotAllowed, NotFound
from pilothouse.machinery.event_loop import Pacer
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

_FUNCTIONS = ("get", "list", "create", "update", "delete", "watch")

_log = logging.getLogger(__name__)


class Functions:
    """Calls the author's functions.

    StatusErrors of a function are raised unchanged, other errors as InternalError. A missing function raises
    MethodNotAllowed.
    """

    given: frozenset[str]  # names of the author's functions
    _failing: dict[str, str]  # function -> error of its last call

    def __init__(self, author: object, reader: AnswerReader) -> None:
        """Raises TypeError if the author has neither get nor list."""
        self.given = frozenset(name for name in _FUNCTIONS if callable(getattr(author, name, None)))
        if not self.given & {"get", "list"}:
            raise TypeError(f"{type(author).__name__} needs at least a function `get` or `list`")
        self.reader = reader
        self._author: Any = author
        self._failing = {}

    @property
    def keys(self) -> Keys:
        return self.reader.keys

    async def get(self, key: str) -> Answer | None:
        """Return the object; None if the function returns None or raises NotFound."""
        namespace, name = self.keys.names(key)
        try:
            with self._called("get"):
                obj = await self._author.get(name, namespace)
        except NotFound:
            return None
        return None if obj is None else self.reader.read_one(obj, key, self._name("get"))

    async def list(self, namespace: str) -> list[Answer]:
        """Return the objects of a namespace; of all for "". Objects of other namespaces are dropped."""
        with self._called("list"):
            objects = list(await self._author.list(namespace))
        answers, pacer, scope = [], Pacer(), self.keys.collection(namespace)
        for obj in objects:
            answer = self.reader.read(obj, self._name("list"))
            if answer.key.startswith(scope):
                answers.append(answer)
            await pacer.yield_if_due()
        return answers

    async def create(self, key: str, obj: Json) -> Answer | None:
        """Create the object. Return the author's version; None if unchanged. `update` does the same."""
        with self._called("create"):
            answer = await self._author.create(obj)
        return None if answer is None else self.reader.read_one(answer, key, self._name("create"))

    async def update(self, key: str, obj: Json) -> Answer | None:
        with self._called("update"):
            answer = await self._author.update(obj)
        return None if answer is None else self.reader.read_one(answer, key, self._name("update"))

    async def delete(self, key: str) -> None:
        namespace, name = self.keys.names(key)
        with self._called("delete"):
            await self._author.delete(name, namespace)

    def watch(self) -> AsyncIterator[object]:
        """Return the author's watch. Each item signals a change. Raises the errors of the author's function."""
        return cast("AsyncIterator[object]", aiter(self._author.watch()))

    @contextmanager
    def _called(self, function: str) -> Iterator[None]:
        if function not in self.given:
            raise MethodNotAllowed.of(self.reader.resource.group_resource, function)
        try:
            yield
        except StatusError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            reason = str(error) or type(error).__name__
            self._log(function, reason, error)
            raise InternalError.of(reason) from error
        self._failing.pop(function, None)

    def _log(self, function: str, reason: str, error: BaseException) -> None:
        """Log a failure as an error once, until the function succeeds or fails for another reason."""
        level = logging.DEBUG if self._failing.get(function) == reason else logging.ERROR
        self._failing[function] = reason
        resource = self.reader.resource.group_resource
        _log.log(level, "%s of %s failed", self._name(function), resource, exc_info=error)

    def _name(self, function: str) -> str:
        return f"{type(self._author).__name__}.{function}"


def _is_cancelled() -> bool:
    """Whether the caller is cancelled, rather than something that the author's function awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
