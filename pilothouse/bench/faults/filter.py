"""What happens to a request that a fault concerns, between the filters that know who asks and the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from urllib.parse import urlencode

from pilothouse.apiserver.http import Handler, Request, Response, StreamBroken
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.faults.fault import Fault
from pilothouse.bench.faults.watches import FaultyWatcher
from pilothouse.machinery.errors import Expired
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


class Misbehavior:
    """Does to requests what faults say."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def answer(self, fault: Fault, request: Request, handler: Handler) -> Response:
        """Return the answer to a request that the fault hits. Raises StatusError where it is to be refused."""
        if delay := fault.delay:
            await asyncio.sleep(delay)
        if (refusal := fault.refusal) is not None:
            if request.info.verb != "watch" or refusal.code != Expired.code:
                raise refusal
            return await self._watch({"watch": {"expireAfterEvents": 0}}, request, handler)
        if fault.effect.get("cut"):
            when = fault.effect["cut"]
            if when == "After":
                with suppress(StatusError):  # nobody will learn of it
                    await handler(request)
            cut(request)
            return Response(200, _broken())
        if fault.effect.get("staleByRevisions") and request.info.verb == "list":
            return await self._stale(fault, request, handler)
        if request.info.verb == "watch":
            return await self._watch(fault.effect, request, handler)
        return await handler(request)

    async def _watch(self, effect: Json, request: Request, handler: Handler) -> Response:
        request.watched = lambda watcher: FaultyWatcher(watcher, effect, self._store, partial(cut, request))
        return await handler(request)

    async def _stale(self, fault: Fault, request: Request, handler: Handler) -> Response:
        """Show the state of some revisions ago; a past that is gone cannot be shown."""
        asked = request.query_string
        if request.param("continue") or request.param("resourceVersion") not in ("", "0"):
            return await handler(request)
        past = max(await self._store.current_revision() - fault.effect["staleByRevisions"], 1)
        changed = {**request.query, "resourceVersion": [str(past)], "resourceVersionMatch": ["Exact"]}
        request.set_query(urlencode(changed, doseq=True))
        try:
            return await handler(request)
        except Expired:
            request.set_query(asked)
            return await handler(request)


def cut(request: Request) -> None:
    """End the connection at once; a call within the process has none, and sees an answer that breaks off."""
    if request.transport is not None:
        request.transport.abort()


async def _broken() -> AsyncIterator[bytes]:
    raise StreamBroken("a Fault cut the connection")
    yield b""  # makes it a stream
