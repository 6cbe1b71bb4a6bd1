"""A server in a thread with its own event loop, for tests without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pilothouse.machinery.platform import new_event_loop
from pilothouse.testing.access import Answer
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.home import Flag
from pilothouse.testing.running import server

T = TypeVar("T")


class InThread:
    """Runs an async context manager in a thread with its own event loop: as a `with` block, or from `start` to
    `stop`.
    """

    def __init__(self, manager: AbstractAsyncContextManager[API]) -> None:
        self._manager = manager
        self._closing = ExitStack()

    def start(self) -> BlockingAPI:
        """Start the server, and wait until it is ready. Raises StartError."""
        with ExitStack() as closing:
            loop = closing.enter_context(LoopThread())
            api = loop.run(self._manager.__aenter__())
            closing.callback(lambda: loop.run(self._manager.__aexit__(None, None, None)))
            opened = closing.enter_context(ExitStack())
            self._closing = closing.pop_all()
        return blocking_api(loop, api, opened)

    def stop(self) -> None:
        """Stop the server, and close everything that was opened on it."""
        self._closing.close()

    def __enter__(self) -> BlockingAPI:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def blocking_api(loop: LoopThread, api: API, opened: ExitStack) -> BlockingAPI:
    """Return the blocking form of a server in the loop."""
    sender = Sender(loop, api)
    return BlockingAPI(api.url, api.kubeconfig, api.token, api.home, opened=opened, send=sender, loop=loop, behind=api)


class Server(InThread):
    """A real API server, as a `with` block, or from `start` to `stop`.

    Takes the arguments of `server`, and raises its errors.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     api.request("GET", "/readyz").body
    b'ok'
    """

    def __init__(
        self, *, data_dir: Path | None = None, process: bool = False, kubernetes_version: str = "", **flags: Flag
    ) -> None:
        super().__init__(server(data_dir=data_dir, process=process, kubernetes_version=kubernetes_version, **flags))


class Sender:
    """Sends requests of BlockingAPIs in the server's loop, with the credentials of each user."""

    def __init__(self, loop: LoopThread, api: API) -> None:
        self._loop = loop
        self._users = {api.kubeconfig: api}

    def __call__(self, user: BlockingAPI, *args: Any, **kwargs: Any) -> Answer:
        return self._loop.run(self.connection(user.kubeconfig).request(*args, **kwargs))

    def connection(self, kubeconfig: Path) -> API:
        """Return the server for the user of this kubeconfig, for code in the server's loop."""
        connection = self._users.get(kubeconfig)
        if connection is None:
            some = next(iter(self._users.values()))
            connection = self._users[kubeconfig] = replace(some, kubeconfig=kubeconfig, token="")
        return connection


class LoopThread:
    """An event loop in a thread, for the duration of the block."""

    def __enter__(self) -> LoopThread:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pilothouse-server", daemon=True)
        self._thread.start()
        return self

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work in the loop; return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __exit__(self, *_: object) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
