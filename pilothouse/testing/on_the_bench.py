"""Test bench methods of API and BlockingAPI. All of them need `testing=True`; implementations are imported on use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.bench import BenchObject, Faults, ServerClock
    from pilothouse.testing.blocking_bench import BlockingBenchObject, BlockingFaults, BlockingServerClock


T = TypeVar("T")


class OnTheBench:
    """Test bench methods for code in an event loop."""

    __slots__ = ()

    @property
    def _api(self) -> API:
        return cast("API", self)

    @property
    def faults(self) -> Faults:
        """Faults of a server with `testing=True`."""
        from pilothouse.testing.bench import Faults

        return Faults(self._api)

    def fault(self, name: str = "", **wishes: Any) -> AbstractAsyncContextManager[BenchObject]:
        """Inject a fault for the duration of the block: `fault(verbs=["create"], answer=503)`."""
        from pilothouse.testing.bench import fault_in_force

        return fault_in_force(self._api, name, wishes)

    @property
    def clock(self) -> ServerClock:
        """The clock of a server with `testing=True`."""
        from pilothouse.testing.bench import ServerClock

        return ServerClock(self._api)

    def recording(
        self, name: str = "", *, users: Iterable[str] = (), user_agents: Iterable[str] = ()
    ) -> AbstractAsyncContextManager[BenchObject]:
        """Record requests of these users and programs (default: all) for the duration of the block."""
        from pilothouse.testing.bench import recorded

        return recorded(self._api, name, {"users": [*users], "userAgents": [*user_agents]})

    async def clear_bench(self) -> None:
        """Delete all faults and recordings, and reset the clock; `restore` does the same."""
        from pilothouse.testing.bench import clear

        await clear(self._api)

    async def settle(self, timeout: float = 30.0, *, user_agents: Iterable[str] = (), quiet_for: str = "") -> None:
        """Wait until a server with `testing=True` and the operator under test are quiescent.

        The server: no request in flight, no controller, scheduler or simulated node with work. Controllers and
        informers of `pilothouse` in this process: no queued key, no running reconcile, no undelivered event. Every
        other program with an open watch: no undelivered event, and no request but watches for `quiet_for` (default:
        500ms). With `user_agents`, programs with these prefixes of the User-Agent header must have an open watch.
        Raises TimeoutError with the busy components.

        >>> from pilothouse.testing import server
        >>> async with server(testing=True) as api:
        ...     await api.request("DELETE", "/api/v1/namespaces/default")
        ...     await api.settle()
        Answer(...)
        """
        from pilothouse.testing.bench import settle

        await settle(self._api, timeout, user_agents, quiet_for)

    async def eventually(self, condition: Callable[[], Awaitable[T] | T], within: float = 10.0) -> T:
        """Return the first true value of the condition, which is evaluated after every change on the server.

        The condition is a function or a coroutine function. AssertionError, LookupError and StatusError mean that the
        condition does not hold yet; other exceptions are raised. Raises AssertionError after `within` seconds, with the
        last value or exception, and a note of the changed objects, events and requests during the wait.

        >>> from pilothouse.testing import server
        >>> async with server() as api:
        ...     async def token() -> str:
        ...         account = await api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
        ...         return account.json["metadata"]["name"]
        ...     await api.eventually(token, within=60)
        'default'
        """
        from pilothouse.testing.eventually import eventually

        async def here(work: Coroutine[Any, Any, Any]) -> Any:
            return await work

        return await eventually(self._api, condition, within, here)


class BlockingOnTheBench:
    """Test bench methods for code without an event loop."""

    __slots__ = ()

    @property
    def _api(self) -> BlockingAPI:
        return cast("BlockingAPI", self)

    @property
    def faults(self) -> BlockingFaults:
        """Blocking form of `API.faults`."""
        from pilothouse.testing.blocking_bench import BlockingFaults

        return BlockingFaults(self._api)

    def fault(self, name: str = "", **wishes: Any) -> AbstractContextManager[BlockingBenchObject]:
        """Blocking form of `API.fault`.

        >>> from pilothouse.testing import Server
        >>> with Server(testing=True) as api, api.fault(verbs=["list"], resources=["pods"], answer=503):
        ...     api.request("GET", "/api/v1/pods").status
        503
        """
        from pilothouse.testing.blocking_bench import removed_at_exit

        return removed_at_exit(self.faults.add(name, **wishes))

    @property
    def clock(self) -> BlockingServerClock:
        """Blocking form of `API.clock`."""
        from pilothouse.testing.blocking_bench import BlockingServerClock

        return BlockingServerClock(self._api)

    def recording(
        self, name: str = "", *, users: Iterable[str] = (), user_agents: Iterable[str] = ()
    ) -> AbstractContextManager[BlockingBenchObject]:
        """Blocking form of `API.recording`."""
        from pilothouse.testing.blocking_bench import recorded, removed_at_exit

        return removed_at_exit(recorded(self._api, name, {"users": [*users], "userAgents": [*user_agents]}))

    def settle(self, timeout: float = 30.0, *, user_agents: Iterable[str] = (), quiet_for: str = "") -> None:
        """Blocking form of `API.settle`."""
        self._api.loop.run(self._api.behind.settle(timeout, user_agents=user_agents, quiet_for=quiet_for))

    def eventually(self, condition: Callable[[], T], within: float = 10.0) -> T:
        """Blocking form of `API.eventually`.

        >>> from pilothouse.testing import Server
        >>> with Server() as api:
        ...     accounts = api.client().resource("v1", "serviceaccounts", namespace="default")
        ...     api.eventually(lambda: accounts.get("default"), within=60)["metadata"]["name"]
        'default'
        """
        from pilothouse.testing.eventually import eventually_blocking

        return eventually_blocking(self._api, condition, within)
