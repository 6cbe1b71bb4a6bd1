"""The author's functions, called in one way: whatever goes wrong in them is an API error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from pilothouse.apiserver.registry.keys import Keys
from pilothouse.builder.own_functions.answers import Answer, AnswerReader
from pilothouse.machinery.errors import MethodNotAllowed, NotFound
from pilothouse.machinery.event_loop import Pacer
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

_FUNCTIONS = ("get", "list", "create", "update", "delete", "watch")

_log = logging.getLogger(__name__)


class Functions:
    """Each call raises the StatusError that the author's function raises, InternalError for everything else that it
    raises, and MethodNotAllowed where the author gave no such function."""

    given: frozenset[str]  # the names of the functions that the author has
    _failing: dict[str, str]  # the functions that failed when they were last called, and why

    def __init__(self, author: object, reader: AnswerReader) -> None:
        """Raises TypeError when nothing can be read from the author's functions."""
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
        """None where the object is not there: the author answers None, or raises NotFound."""
        namespace, name = self.keys.names(key)
        try:
            with self._called("get"):
                found = await self._author.get(name, namespace)
        except NotFound:
            return None
        return None if found is None else self.reader.read_one(found, key, self._name("get"))

    async def list(self, namespace: str) -> list[Answer]:
        """Those of the namespace, or all for "". An author may answer more than that: it is left out."""
        with self._called("list"):
            found = list(await self._author.list(namespace))
        answers, pacer, scope = [], Pacer(), self.keys.collection(namespace)
        for obj in found:
            answer = self.reader.read(obj, self._name("list"))
            if answer.key.startswith(scope):
                answers.append(answer)
            await pacer.yield_if_due()
        return answers

    async def create(self, key: str, obj: Json) -> Answer | None:
        """The object as the author keeps it; None where it is kept as it was sent. So does `update`."""
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
        """Whatever it gives says that something has changed. Raises what the author's function raises."""
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
            why = str(error) or type(error).__name__
            self._log(function, why, error)
            raise InternalError.of(why) from error
        self._failing.pop(function, None)

    def _log(self, function: str, why: str, error: BaseException) -> None:
        """Said once, until it works again or fails in another way: the same every second tells nobody more."""
        level = logging.DEBUG if self._failing.get(function) == why else logging.ERROR
        self._failing[function] = why
        resource = self.reader.resource.group_resource
        _log.log(level, "%s of %s failed", self._name(function), resource, exc_info=error)

    def _name(self, function: str) -> str:
        return f"{type(self._author).__name__}.{function}"


def _is_cancelled() -> bool:
    """Whether the caller is, and not only something of the author's that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
