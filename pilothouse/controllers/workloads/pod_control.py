"""Creation and deletion of an owner's pods, with events; hash labels distinguish pods of different templates."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import orjson

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import PODS
from pilothouse.kinds.owners import controller_ref
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names_generator import safe_encode
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.machinery.status_error import PilothouseError, StatusError

_MAX_PREFIX = 253
_FIRST_BATCH, _LARGEST_BATCH = 1, 64
T = TypeVar("T")
AT_ONCE = 16
POD_TEMPLATE_HASH = "pod-template-hash"
CONTROLLER_REVISION_HASH = "controller-revision-hash"


class NoLabels(PilothouseError):
    """The template has no labels, so no selector could match its pods."""


class PodControl:
    """Writes pods on behalf of their controlling owners."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._pods = client.for_resource(PODS)
        self._recorder = recorder

    async def create(self, template: Json, owner: Json, *, name: str = "", generate_name: str = "") -> Json:
        """Create a pod from the template. Raises StatusError, after recording an event, or NoLabels."""
        pod = pod_from_template(template, owner)
        if not pod["metadata"]["labels"]:
            raise NoLabels("unable to create pods, no labels")
        if generate_name:
            pod["metadata"]["generateName"] = generate_name
        if name:
            pod["metadata"]["name"] = name
        try:
            created = await self._pods.namespace(namespace_of(owner)).create(pod)
        except StatusError as error:
            if not is_refusal_of_terminating_namespace(error):
                self._recorder.event(owner, WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return created

    async def delete(self, name: str, owner: Json) -> None:
        """Delete a pod. Raises StatusError, after recording an event, or NotFound, without an event."""
        try:
            await self._pods.namespace(namespace_of(owner)).delete(name)
        except NotFound:
            raise
        except StatusError as error:
            self._recorder.event(owner, WARNING, "FailedDelete", f"Error deleting: {error}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {name}")

    async def patch(self, pod: Json, changed: Json) -> Json:
        """Apply a strategic merge patch. Raises StatusError."""
        return await self._pods.namespace(namespace_of(pod)).patch(name_of(pod), changed, PatchType.STRATEGIC)


def pod_from_template(template: Json, owner: Json) -> Json:
    """Return a pod controlled by the owner, without a name. Its spec is shared with the template: treat as
    immutable."""
    of = template.get("metadata") or {}
    meta: Json = {
        "generateName": pod_prefix(name_of(owner)),
        "labels": dict(of.get("labels") or {}),
        "annotations": dict(of.get("annotations") or {}),
        "ownerReferences": [controller_ref(owner)],
    }
    if of.get("finalizers"):
        meta["finalizers"] = list(of["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


def pod_prefix(owner: str) -> str:
    """Return the owner's name, with a dash if that fits."""
    return f"{owner}-" if len(owner) + 1 <= _MAX_PREFIX else owner


async def slow_start(
    count: int, do: Callable[[], Coroutine[Any, Any, object]], *, goes_on: Callable[[], bool] = lambda: True
) -> int:
    """Call `do` up to `count` times, in batches that double while every call succeeds; return the number of successes.

    If quota rejects the first of a thousand pods, the others are not attempted. `goes_on` is called between batches;
    False stops, so that an owner that was scaled down gets no more pods. Raises the first error as `SlowStartError`,
    with the number of successes.
    """
    done, batch = 0, min(count, _FIRST_BATCH)
    while batch > 0 and goes_on():
        results = await few_at_once([do] * batch)
        errors = [result for result in results if isinstance(result, Exception)]
        done += batch - len(errors)
        if errors:
            raise SlowStartError(done, errors[0]) from errors[0]
        batch = min(2 * batch, count - done, _LARGEST_BATCH)
    return done


class SlowStartError(PilothouseError):
    """The first error of a batch; `succeeded` is the total number of successful calls."""

    def __init__(self, succeeded: int, error: BaseException) -> None:
        super().__init__(str(error))
        self.succeeded = succeeded
        self.error = error


async def few_at_once(work: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T | Exception]:
    """Run all calls with bounded concurrency; return each result or exception, in order.

    The server and its controllers share an event loop. Hundreds of concurrent requests would delay every other client
    without finishing earlier.
    """
    turns = iter(enumerate(work))
    results: dict[int, T | Exception] = {}

    async def take_turns() -> None:
        for number, do in turns:
            try:
                results[number] = await do()
            except Exception as error:
                results[number] = error

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(AT_ONCE, len(work))):
            tasks.create_task(take_turns())
    return [results[number] for number in range(len(work))]


def template_hash(template: Json, collisions: int | None = None) -> str:
    """Return a short deterministic hash of template and collision count.

    Upstream hashes Go's printed struct, which is not reproducible here. Controllers that take over compare templates,
    never hashes.
    """
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(zlib.crc32(data)))
