"""The test bench, as both forms of a server in a test have it. All of it needs `testing=True`.

What stands behind it is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.bench import BenchObject, Faults, ServerClock
    from pilothouse.testing.blocking_bench import BlockingBenchObject, BlockingFaults, BlockingServerClock


class OnTheBench:
    """For code in an event loop."""

    __slots__ = ()

    @property
    def _api(self) -> API:
        return cast("API", self)

    @property
    def faults(self) -> Faults:
        """What a server with `testing=True` is to do wrong."""
        from pilothouse.testing.bench import Faults

        return Faults(self._api)

    def fault(self, name: str = "", **wishes: Any) -> AbstractAsyncContextManager[BenchObject]:
        """Have the server misbehave for as long as the block lasts: `fault(verbs=["create"], answer=503)`."""
        from pilothouse.testing.bench import fault_in_force

        return fault_in_force(self._api, name, wishes)

    @property
    def clock(self) -> ServerClock:
        """The time of a server with `testing=True`."""
        from pilothouse.testing.bench import ServerClock

        return ServerClock(self._api)

    def recording(
        self, name: str = "", *, users: Iterable[str] = (), user_agents: Iterable[str] = ()
    ) -> AbstractAsyncContextManager[BenchObject]:
        """Record for as long as the block lasts what these users and programs, or all, ask for."""
        from pilothouse.testing.bench import recorded

        return recorded(self._api, name, {"users": [*users], "userAgents": [*user_agents]})

    async def clear_bench(self) -> None:
        """Take all faults and recordings away, and have the clock run as the machine's; `restore` does so, too."""
        from pilothouse.testing.bench import clear

        await clear(self._api)

    async def settle(self, timeout: float = 30.0) -> None:
        """Return when a server with `testing=True` has come to rest: no request is under way, no controller has work.

        Raises TimeoutError with who still works.
        """
        from pilothouse.testing.bench import settle

        await settle(self._api, timeout)


class BlockingOnTheBench:
    """For code without an event loop."""

    __slots__ = ()

    @property
    def _api(self) -> BlockingAPI:
        return cast("BlockingAPI", self)

    @property
    def faults(self) -> BlockingFaults:
        """As `API.faults`."""
        from pilothouse.testing.blocking_bench import BlockingFaults

        return BlockingFaults(self._api)

    def fault(self, name: str = "", **wishes: Any) -> AbstractContextManager[BlockingBenchObject]:
        """As `API.fault`.

        >>> from pilothouse.testing import Server
        >>> with Server(testing=True) as api, api.fault(verbs=["list"], resources=["pods"], answer=503):
        ...     api.request("GET", "/api/v1/pods").status
        503
        """
        from pilothouse.testing.blocking_bench import there

        return there(self.faults.add(name, **wishes))

    @property
    def clock(self) -> BlockingServerClock:
        """As `API.clock`."""
        from pilothouse.testing.blocking_bench import BlockingServerClock

        return BlockingServerClock(self._api)

    def recording(
        self, name: str = "", *, users: Iterable[str] = (), user_agents: Iterable[str] = ()
    ) -> AbstractContextManager[BlockingBenchObject]:
        """As `API.recording`."""
        from pilothouse.testing.blocking_bench import recorded, there

        return there(recorded(self._api, name, {"users": [*users], "userAgents": [*user_agents]}))

    def settle(self, timeout: float = 30.0) -> None:
        """As `API.settle`."""
        self._api.loop.run(self._api.behind.settle(timeout))
