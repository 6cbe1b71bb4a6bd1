"""The loopback client: the server's own calls to the whole chain, in this process and as system:apiserver or another.

It can be handed out before the chain is built, because the chain's own servers need it. Until `bind`, calls wait.
"""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.chain import ChainConfig, loopback_handler_chain
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.client.rest.client import Client
from pilothouse.controlplane.handler_transport import HandlerTransport
from pilothouse.controlplane.worker_gate import WorkerGate
from pilothouse.machinery.release import GIT_VERSION


class Loopback:
    def __init__(self, chain: ChainConfig, *, host: str = "localhost") -> None:
        """`host`: under which its calls are counted."""
        self._chain = chain
        self._host = host
        self._bound = asyncio.Event()
        self._api: Handler | None = None
        self.gate = WorkerGate()
        self.client: Client = self._client(self._call, "kube-apiserver")

    def client_named(self, program: str, user: User | None = None) -> Client:
        """Return a client for workers beside the server, whose changes are recorded in managedFields under this name.

        It acts as the user, with the user's rights; with none, as system:apiserver with every right.
        """
        return self._client(self.gate.before(self._call), program, user)

    def _client(self, call: Handler, program: str, user: User | None = None) -> Client:
        handler = loopback_handler_chain(call, self._chain, user)
        agent = f"{program}/{GIT_VERSION}"
        return Client(HandlerTransport(handler), user_agent=agent, on_warning=_ignore, host=self._host)

    def bind(self, api: Handler) -> None:
        """Calls go to this server from now on."""
        self._api = api
        self._bound.set()

    async def _call(self, request: Request) -> Response:
        await self._bound.wait()
        assert self._api is not None
        request.is_own = True
        return await self._api(request)


def _ignore(warning: str) -> None:
    """Drop a warning: those that the server gives itself are no news to anybody."""
