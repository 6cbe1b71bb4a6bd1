"""The server on a thread of its own, for tests without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pilothouse.machinery.platform import new_event_loop
from pilothouse.testing.answer import Answer
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.flags import Flag
from pilothouse.testing.running import server

T = TypeVar("T")


class InThread:
    """What runs in an event loop, on a thread with a loop of its own: for a `with` block, or from `start` to `stop`."""

    def __init__(self, asked: AbstractAsyncContextManager[API]) -> None:
        self._asked = asked
        self._closing = ExitStack()

    def start(self) -> BlockingAPI:
        """Return when the server is ready. Raises StartError."""
        with ExitStack() as closing:
            loop = closing.enter_context(LoopThread())
            api = loop.run(self._asked.__aenter__())
            closing.callback(lambda: loop.run(self._asked.__aexit__(None, None, None)))
            opened = closing.enter_context(ExitStack())
            self._closing = closing.pop_all()
        sender = _Sender(loop, api)
        return BlockingAPI(
            api.url, api.kubeconfig, api.token, api.home, opened=opened, send=sender, loop=loop, behind=api
        )

    def stop(self) -> None:
        """Return when the server is gone, and everything that was opened on it is closed."""
        self._closing.close()

    def __enter__(self) -> BlockingAPI:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class Server(InThread):
    """A whole API server for as long as a `with` block lasts, or from `start` to `stop`.

    Takes what `server` takes, and raises what it raises.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     api.request("GET", "/readyz").body
    b'ok'
    """

    def __init__(self, *, data_dir: Path | None = None, process: bool = False, **flags: Flag) -> None:
        super().__init__(server(data_dir=data_dir, process=process, **flags))


class _Sender:
    """Sends the requests of a BlockingAPI in the loop of its server, each user's as that user's."""

    def __init__(self, loop: LoopThread, api: API) -> None:
        self._loop = loop
        self._users = {api.kubeconfig: api}

    def __call__(self, asking: BlockingAPI, *args: Any, **kwargs: Any) -> Answer:
        known = self._users.get(asking.kubeconfig)
        if known is None:
            some = next(iter(self._users.values()))
            known = self._users[asking.kubeconfig] = replace(some, kubeconfig=asking.kubeconfig, token="")
        return self._loop.run(known.request(*args, **kwargs))


class LoopThread:
    """An event loop on a thread, from `__enter__` to `__exit__`."""

    def __enter__(self) -> LoopThread:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pilothouse-server", daemon=True)
        self._thread.start()
        return self

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __exit__(self, *_: object) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
