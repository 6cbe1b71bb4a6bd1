"""The test bench of one server: its kinds, and the filter through which they have their effects."""

from __future__ import annotations

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.connections import Connections
from pilothouse.bench.definitions import GROUP, VERSION
from pilothouse.bench.faults.definition import FAULT
from pilothouse.bench.faults.faults import Faults
from pilothouse.bench.served_kind import ServedKind
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.machinery.names import GroupVersion

_GROUP_VERSION = GroupVersion(GROUP, VERSION)


class Bench:
    """Its objects live beside all others in the store, so that a snapshot that is restored leaves them alone."""

    def __init__(self, store: Store, *, key_prefix: str) -> None:
        root = f"{key_prefix}-testing"
        self._connections = Connections()
        self._faults = Faults(store, self._connections)
        faults = ServedKind(FAULT, store, root=root, hear=self._faults.hear, status_of=self._faults.status_of)
        self._faults.changed = faults.status_changed
        self._kinds = [faults]

    def filter(self, own: bool) -> Filter:
        """Return the filter of the bench; `own` says that it is for the calls that the server makes itself."""

        def wrap(handler: Handler) -> Handler:
            async def answer(request: Request) -> Response:
                self._connections.used_by(request)
                return await self._faults.answer(request, handler, own=own)

            return answer

        return wrap

    def install(self, generic: GenericConfig, delegate: GenericAPIServer) -> GenericAPIServer:
        """Return a server of the group in front of the delegate. `generic` has `definitions` of this bench."""
        server = generic.new_server("test-bench", delegate)
        resources = [served for kind in self._kinds for served in kind.served]
        group = APIGroup(GROUP, [APIVersion(_GROUP_VERSION, resources)])
        install_api_group(server, group, generic.installer(AdmissionChain()))
        server.discovery.put(GroupDocuments.of(group))
        server.add_post_start_hook("start-test-bench", self._start)
        for kind in self._kinds:
            server.add_drained(kind.stop)
        return server

    @property
    def definitions(self) -> CustomDefinitions:
        """What OpenAPI says about the kinds."""
        return CustomDefinitions(lambda: [kind.resource for kind in self._kinds], _GROUP_VERSION)

    async def _start(self, context: HookContext) -> None:
        for kind in self._kinds:
            await kind.start()
