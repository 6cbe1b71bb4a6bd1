"""The generic API server: the common base of aggregator, kube and extensions.

A server responds to the paths in its mux and delegates all others. The outermost server of a chain serves the health
checks and listed paths, and runs the hooks, of all servers in the chain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from pilothouse.apiserver.discovery.manager import GroupManager
from pilothouse.apiserver.http import Handler, Request, Response, raw_json
from pilothouse.apiserver.openapi.containers import server_version_container
from pilothouse.apiserver.openapi.definitions import OpenAPIDefinitions
from pilothouse.apiserver.openapi.handlers import OpenAPIDocuments, install_openapi
from pilothouse.apiserver.openapi.service import OpenAPIService
from pilothouse.apiserver.profiling.install import install_profiling
from pilothouse.apiserver.server.checks import LOG, LOOPBACK, PING, in_upstreams_order, shutdown_check
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.health import HealthCheck, install_health
from pilothouse.apiserver.server.hooks import PostStartEntry, PostStartHook, PreShutdownEntry, PreShutdownHook
from pilothouse.apiserver.server.lifecycle import LifecycleSignals
from pilothouse.apiserver.server.metrics_endpoint import install_metrics
from pilothouse.apiserver.server.metrics_of_many import Peers
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.version import install_version, version_info
from pilothouse.apiserver.server.zpages import install_debug_flags, install_zpages
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass

Release: TypeAlias = Callable[[], Awaitable[None]]


class GenericAPIServer:
    """A handler, and thus a possible delegate of another server.

    Hooks, checks and paths can be added until `prepare_run`; paths also later.

    >>> from pilothouse.apiserver import GenericAPIServer, Response
    >>> async def nobody(request):
    ...     return Response(404)
    >>> inner = GenericAPIServer("inner", nobody)
    >>> outer = GenericAPIServer("outer", inner)
    >>> outer.next is inner
    True
    """

    def __init__(
        self,
        name: str,
        delegate: Handler,
        *,
        lifecycle: LifecycleSignals | None = None,
        health_checks: Iterable[HealthCheck] = (),
        definitions: OpenAPIDefinitions | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.name = name
        self._peers = peers
        self.delegate = delegate
        self.lifecycle = lifecycle or LifecycleSignals()
        self.mux = PathRecorderMux(name, delegate)
        self.handler: Handler = self.mux
        self.definitions = definitions
        """The OpenAPI definitions of its kinds; None if all kinds are built in."""
        self.openapi: OpenAPIService = OpenAPIService(self.next.openapi if self.next else None)
        self.openapi_documents: OpenAPIDocuments = self.openapi
        """The documents below /openapi."""
        self.discovery: GroupManager = GroupManager(self.next.discovery if self.next else None)
        self._shared_checks = [PING, LOG, *health_checks]
        if version_rules.holds("LoopbackCertificateCheck"):
            self._shared_checks.insert(2, LOOPBACK)
        self._own_checks: list[HealthCheck] = []
        self._post_start: dict[str, PostStartEntry] = {}
        self._pre_shutdown: dict[str, PreShutdownEntry] = {}
        self._drained: list[Release] = []
        self._destroy: list[Release] = []
        self._prepared = False

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self.mux(request)

    @property
    def next(self) -> GenericAPIServer | None:
        """The delegate if it is a server; None at the end of the chain."""
        return self.delegate if isinstance(self.delegate, GenericAPIServer) else None

    def add_post_start_hook(self, name: str, hook: PostStartHook, *, checked: bool = True) -> None:
        """Run a hook after the start. `checked`: a health check fails until the hook has finished."""
        self._refuse_when_prepared(name)
        if any(entry.name == name for entry in self.post_start_hooks()):
            raise ValueError(f'unable to add "{name}" because it was already registered')
        entry = self._post_start[name] = PostStartEntry(name, hook)
        if checked:
            self._own_checks.append(entry.health_check())

    def add_pre_shutdown_hook(self, name: str, hook: PreShutdownHook) -> None:
        self._refuse_when_prepared(name)
        if any(entry.name == name for entry in self.pre_shutdown_hooks()):
            raise ValueError(f'unable to add "{name}" because it is already registered')
        self._pre_shutdown[name] = PreShutdownEntry(name, hook)

    def add_health_check(self, *checks: HealthCheck) -> None:
        for check in checks:
            self._refuse_when_prepared(check.name)
            self._own_checks.append(check)

    def add_drained(self, release: Release) -> None:
        """Register a callback that ends long-running requests such as watches, after other requests are drained."""
        self._drained.append(release)

    def add_destroy(self, release: Release) -> None:
        """Register a callback that releases resources at the end."""
        self._destroy.append(release)

    def post_start_hooks(self) -> list[PostStartEntry]:
        """The hooks of the chain, innermost server first, like the other lists."""
        return [*(self.next.post_start_hooks() if self.next else ()), *self._post_start.values()]

    def pre_shutdown_hooks(self) -> list[PreShutdownEntry]:
        return [*(self.next.pre_shutdown_hooks() if self.next else ()), *self._pre_shutdown.values()]

    def health_checks(self) -> list[HealthCheck]:
        """The checks of the chain; shared checks occur once."""
        below = self.next.health_checks() if self.next else []
        by_name: dict[str, HealthCheck] = {}
        for check in (*self._shared_checks, *below, *self._own_checks):
            by_name.setdefault(check.name, check)
        return in_upstreams_order(list(by_name.values()))

    def listed_paths(self) -> list[str]:
        return sorted({*self.mux.listed_paths(), *(self.next.listed_paths() if self.next else ())})

    def prepare_run(
        self,
        *,
        livez_grace_period: float = 0.0,
        flags: Mapping[str, str] | None = None,
        profiling: bool = True,
        features: FeatureGates | None = None,
    ) -> PreparedAPIServer:
        """Freeze the lists and install their endpoints. Called on the outermost server only."""
        self.add_health_check(shutdown_check(self.lifecycle.shutdown_initiated))
        install_index(self.mux, self.listed_paths)
        features = features or FeatureGates()
        install_version(self.mux, features)
        install_metrics(self.mux, self._peers, version_info(features))
        self.openapi.update(server_version_container())
        install_openapi(self.mux, self.openapi_documents)
        ready = self.lifecycle.has_been_ready.signal
        install_health(self.mux, self.health_checks(), grace=livez_grace_period, ready=ready)
        if profiling:
            install_profiling(self.mux)
            install_debug_flags(self.mux)
        install_zpages(self.mux, flags or {}, self.listed_paths, features)
        self._close()
        return PreparedAPIServer(self)

    async def drained(self) -> None:
        """Call the drain callbacks once, outermost server first, like `destroy`."""
        while self._drained:
            await self._drained.pop(0)()
        if self.next:
            await self.next.drained()

    async def destroy(self) -> None:
        await self.drained()
        while self._destroy:
            await self._destroy.pop(0)()
        if self.next:
            await self.next.destroy()

    def _close(self) -> None:
        self._prepared = True
        if self.next:
            self.next._close()

    def _refuse_when_prepared(self, name: str) -> None:
        if self._prepared:
            raise RuntimeError(f'unable to add "{name}" to {self.name}: the server is already prepared to run')


@dataclass(frozen=True, slots=True)
class PreparedAPIServer:
    """A server after `prepare_run`. Only a prepared server can run.

    >>> from pilothouse.apiserver import GenericAPIServer, Response
    >>> async def nobody(request):
    ...     return Response(404)
    >>> "/readyz" in GenericAPIServer("mine", nobody).prepare_run().server.listed_paths()
    True
    """

    server: GenericAPIServer


def install_index(mux: PathRecorderMux, listed_paths: Callable[[], list[str]]) -> None:
    handler = index(listed_paths)
    mux.handle("/", handler, listed=False)
    mux.handle("/index.html", handler, listed=False)


def index(listed_paths: Callable[[], list[str]]) -> Handler:
    async def answer(request: Request) -> Response:
        return raw_json(200, {"paths": listed_paths()})

    return answer
