"""The test bench of one server: its kinds, and the filter that applies their effects."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.bench.clock_kind import CHECK, CLOCK, ServerClock
from pilothouse.bench.definitions import GROUP, VERSION
from pilothouse.bench.faults.definition import FAULT
from pilothouse.bench.faults.fault import Selector
from pilothouse.bench.faults.faults import Connections, Faults
from pilothouse.bench.recording_kind import RECORDING, Recordings
from pilothouse.bench.request_log import LoggedRequest, RequestLog
from pilothouse.bench.scope import ProgramSelection, ServerScope, Traffic
from pilothouse.bench.served_kind import Owner, ServedKind
from pilothouse.bench.settled_kind import SETTLED, Quiescence, SettledObjects
from pilothouse.bench.snapshot_kind import SNAPSHOT, SnapshotObjects
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.machinery.names import GroupVersion

_GROUP_VERSION = GroupVersion(GROUP, VERSION)


class Bench:
    """The test bench. Its objects have their own key prefix, so that restoring a snapshot does not affect them.

    Implements TestBench of the filters.
    """

    def __init__(self, scope: ServerScope, snapshots: Snapshots, *, key_prefix: str) -> None:
        store = snapshots.store
        self._scope = scope
        self.time = scope.time
        self._connections, self._traffic = Connections(), Traffic(scope.time)
        self.quiescence = quiescence = Quiescence(self._traffic, scope, store)
        self.faults = Faults(store, self._connections, self._traffic)
        self._clock = ServerClock(scope.time, quiescence)
        self._recordings = Recordings(store, scope.time)
        self._settled = SettledObjects(quiescence)
        owners: list[tuple[CustomResource, Owner]] = [
            (CLOCK, self._clock),
            (FAULT, self.faults),
            (RECORDING, self._recordings),
            (SETTLED, self._settled),
            (SNAPSHOT, SnapshotObjects(snapshots)),
        ]
        root = f"{key_prefix}-testing"
        self._kinds = {
            resource.plural: ServedKind(resource, store, root=root, owner=owner) for resource, owner in owners
        }

    def around(self, handler: Handler) -> Handler:
        return self._scope.around(handler)

    def filter(self, own: bool) -> Filter:
        """Return the filter of the bench. `own`: the filter is for loopback calls of the server itself."""

        def wrap(handler: Handler) -> Handler:
            async def misbehave(request: Request) -> Response:
                logs = self._recordings.logs(request, own=own)
                if not logs:
                    return await self.faults.answer(request, handler, own=own)
                logged = LoggedRequest(logs, request)
                faulty = partial(self.faults.answer, own=own, on_hit=logged.on_hit)
                return await logged.answer(request, handler, faulty)

            async def answer(request: Request) -> Response:
                self._connections.track(request)
                self._recordings.record(request, own=own)
                if request.info.group == GROUP:
                    # Write pending status changes before a request for a bench object.
                    kind = self._kinds.get(request.info.resource)
                    if kind is not None and request.info.verb != "watch":
                        await kind.flush()
                return await self._traffic.counted(request, misbehave, own=own)

            return answer

        return wrap

    @property
    def in_flight(self) -> int:
        """Requests in flight, without held requests."""
        return self._traffic.in_flight

    @property
    def requests(self) -> int:
        """Number of requests so far."""
        return self._traffic.requests

    @property
    def changes(self) -> int:
        """Number of writes so far."""
        return self._traffic.changes

    def busy_programs(self, selection: ProgramSelection) -> list[str]:
        """Return the busy programs outside of the server."""
        return self._traffic.programs.busy(selection)

    def log(self, users: Sequence[str]) -> AbstractContextManager[RequestLog]:
        """Log the requests and watch events of these users for the duration of the block."""
        return self._recordings.log(Selector(tuple(users)))

    def close_connections(self, users: Sequence[str]) -> None:
        """Abort the connections of these users."""
        self._connections.close(Selector(tuple(users)))

    def install(self, generic: GenericConfig, delegate: GenericAPIServer) -> GenericAPIServer:
        """Return a server of the group in front of the delegate. `generic` must have the `definitions` of this
        bench.
        """
        server = generic.new_server("test-bench", delegate)
        resources = [served for kind in self._kinds.values() for served in kind.served]
        group = APIGroup(GROUP, [APIVersion(_GROUP_VERSION, resources)])
        install_api_group(server, group, generic.installer(AdmissionChain()))
        server.discovery.put(GroupDocuments.of(group))
        server.add_post_start_hook("start-test-bench", self._start)
        server.add_health_check(CHECK)
        server.add_drained(self._settled.stop)
        for kind in self._kinds.values():
            server.add_drained(kind.stop)
        return server

    @property
    def definitions(self) -> CustomDefinitions:
        """OpenAPI definitions of the kinds."""
        return CustomDefinitions(lambda: [kind.resource for kind in self._kinds.values()], _GROUP_VERSION)

    async def _start(self, context: HookContext) -> None:
        for kind in self._kinds.values():
            await kind.start()
        await self._clock.ensure()
