"""Questions to one watch about how far it has come: one at a time, however many want to know."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Watch

log = logging.getLogger(__name__)


class ProgressRequester:
    """A question asked while another is on its way is asked after it: the answer to that one may be older than what
    the second caller has to know."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def request(self) -> None:
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._request())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _request(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                await self._watch.request_progress()
            except StorageError as error:
                log.debug("no progress to be had: %s", error)
