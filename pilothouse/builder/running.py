"""Runs an extension server: store and certificates → delegated authentication → generic server → serve."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from pilothouse.apiserver.endpoints.api_groups import install_api_group, install_group_list
from pilothouse.apiserver.filters.audit import Auditing
from pilothouse.apiserver.filters.chain import ChainConfig, handler_chain, loopback_handler_chain
from pilothouse.apiserver.filters.priority_and_fairness import FlowControl
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.estimate import ResourceStats
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.checks import storage_checks
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.hooks import HookContext, HookFailed
from pilothouse.apiserver.server.lifecycle import not_found
from pilothouse.apiserver.server.run import Background, RunConfig, Runner
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.builder.cluster import Cluster, Standalone, open_cluster
from pilothouse.builder.command import Options
from pilothouse.builder.extension_service import on_this_machine
from pilothouse.builder.serving import AuthoredDefinitions, ServedKind, api_group
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.config.model import ConfigError
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.controlplane.errors import start_failures
from pilothouse.controlplane.ports import Port, host_port
from pilothouse.controlplane.serving import secure_serving
from pilothouse.controlplane.storage import open_store
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersionResource
from pilothouse.machinery.status_error import StatusError

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer

_START_FAILURES = (
    *(CertificateError, ConfigError, ConnectionFailed, DataDirError),
    *(HookFailed, StatusError, StorageError, ValueError),
)


_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Unspecified address -> address that a client on this machine connects to."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Addresses and files of a ready server."""

    group: str
    url: str
    data_dir: Path
    ca_file: Path
    kubeconfig: Path | None = None
    """Kubeconfig of a standalone server; grants all permissions."""
    register_file: Path | None = None
    """Manifests for `kubectl apply -f`, if the server does not register itself."""


async def serve(server: APIServer, options: Options, stop: asyncio.Event, ready: Callable[[Ready], None]) -> None:
    """Serve in this event loop until `stop` is set, then shut down in order.

    Raises StartFailed, and InvalidDeclaration for resources that cannot be served as declared.
    """
    with start_failures(*_START_FAILURES):
        async with AsyncExitStack() as opened:
            await _serve(server, options, stop, ready, opened)


async def _serve(
    server: APIServer, options: Options, stop: asyncio.Event, ready: Callable[[Ready], None], opened: AsyncExitStack
) -> None:
    kinds = server.kinds
    for kind in kinds:
        _ = kind.custom_resource  # invalid declarations are reported before anything is opened
    opened.callback(DataDir.open(options.data_dir).close)
    timeout = options.generic.storage_initialization_timeout
    store = await open_store(options.etcd, options.data_dir, timeout=timeout)
    opened.push_async_callback(store.close)
    cluster = await open_cluster(server.place, options, opened)
    root = options.etcd.prefix if options.etcd.prefix != DEFAULT_ROOT else f"{DEFAULT_ROOT}/{server.group}"
    served = [ServedKind(kind, store, root=root) for kind in kinds]
    await _Process(server, options, cluster, store, served).run(stop, ready)


class _Process:
    """A generic server with the group, and its port."""

    def __init__(
        self,
        server: APIServer,
        options: Options,
        cluster: Cluster | Standalone,
        store: Store,
        served: list[ServedKind],
    ) -> None:
        self._server = server
        self._options = options
        self._cluster = cluster
        self._served = served
        config = GenericConfig(
            store,
            authenticator=cluster.authenticator,
            authorizer=cluster.authorizer,
            health_checks=(
                *storage_checks(
                    store, timeout=options.etcd.healthcheck_timeout, ready_timeout=options.etcd.readycheck_timeout
                ),
            ),
            run_options=options.generic,
            definitions=AuthoredDefinitions(server.group, served),
        )
        self._background: Background = {}
        self._chain = ChainConfig(
            config.authenticator,
            config.authorizer,
            anonymous=cluster.anonymous,
            run_options=options.generic,
            auditing=self._audit(),
            front_proxy=cluster.front_proxy,
            flow_control=self._flow_control(),
        )
        self._generic = self._new_server(config)
        self._install_controllers()
        self._prepared = self._generic.prepare_run(
            livez_grace_period=options.generic.livez_grace_period, profiling=options.generic.profiling
        )
        secure = secure_serving(replace(options.secure_serving, bind_address=cluster.bind_address), cluster.tls_files)
        self._port = Port(handler_chain(self._generic.handler, self._chain), secure.endpoint)

    async def run(self, stop: asyncio.Event, ready: Callable[[Ready], None]) -> None:
        """Serve until `stop` is set. Raises StartFailed, HookFailed."""
        background = {**self._background, **self._cluster.background}
        drain = self._chain.in_flight.drain
        config = RunConfig([self._port], drain, run_options=self._options.generic, background=background)
        await Runner(self._prepared, config).run(stop, ready=lambda: ready(self._announce()))

    def _new_server(self, config: GenericConfig) -> GenericAPIServer:
        server = config.new_server(self._server.name, not_found(config.lifecycle.mux_and_discovery_complete))
        group = api_group(self._server.group, self._served)
        phase_of = self._cluster.namespace_phase
        admission = AdmissionChain([NamespaceLifecycle(phase_of)] if phase_of else [])
        groups = [group] if group.versions else []  # a server may start without kinds
        for api_group_ in groups:
            install_api_group(server, api_group_, config.installer(admission))
        install_group_list(server, groups)
        for served in self._served:
            server.add_drained(served.stop)
        server.add_post_start_hook("start-resources", self._start_resources)
        server.add_post_start_hook("register", self._register)
        server.add_pre_shutdown_hook("unregister", self._cluster.unregister)
        return server

    async def _start_resources(self, context: HookContext) -> None:
        for served in self._served:
            await served.start()

    async def _register(self, context: HookContext) -> None:
        await self._cluster.register(self._port.number)

    def _audit(self) -> Auditing | None:
        if not self._options.audit.policy_file:
            return None
        from pilothouse.controlplane.audit import build_audit

        audit = build_audit(self._options.audit)
        if audit is None:
            return None
        self._background["audit"] = audit.run
        return audit.auditing

    def _flow_control(self) -> FlowControl | None:
        """Return flow control by the cluster's configuration; None without a cluster (only the number of seats is
        bounded).
        """
        client, options = self._cluster.client, self._options.generic
        controller = FlowController.of(options)
        if client is None or controller is None:
            return None
        registries = [served.registry for served in self._served]
        followed = ClusterFlowControl(client, controller, registries, request_timeout=options.request_timeout)
        self._background["priority-and-fairness"] = followed.run
        return followed.control

    def _install_controllers(self) -> None:
        if not self._server.controllers:
            return
        from pilothouse.builder.controllers import ControllerRunner

        runner = ControllerRunner(self._server, self._options, self._cluster, self._loopback)
        self._generic.add_post_start_hook("start-controllers", runner.start)
        self._generic.add_pre_shutdown_hook("stop-controllers", runner.stop)

    @property
    def _loopback(self) -> Handler:
        """Handler chain for calls from this process."""
        return loopback_handler_chain(self._generic.handler, self._chain)

    def _announce(self) -> Ready:
        cluster = self._cluster
        address = _LOOPBACK_OF.get(cluster.bind_address, cluster.bind_address)
        url = f"https://{host_port(address, self._port.number)}"
        folder = self._options.data_dir
        if isinstance(cluster, Standalone):
            return Ready(self._server.group, url, folder, cluster.ca_file, kubeconfig=cluster.write_kubeconfig(url))
        register = None if cluster.registers else self._write_registration(cluster)
        return Ready(self._server.group, url, folder, cluster.ca_file, register_file=register)

    def _write_registration(self, cluster: Cluster) -> Path | None:
        """Write the registration manifests; None if the certificate was given, because its CA is unknown."""
        if cluster.certificate is None:
            return None
        bundle = cluster.certificate.ca_bundle
        objects = on_this_machine(cluster.place, cluster=cluster.config.host, port=self._port.number, ca_bundle=bundle)
        file = self._options.data_dir / "register.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1), encoding="utf-8")
        return file


_SCHEMAS = GroupVersionResource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
_LEVELS = GroupVersionResource("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations")


class ClusterFlowControl:
    """Flow control that follows the cluster. `control` is for the filter; `run` follows until cancelled."""

    def __init__(
        self, client: Client, controller: FlowController, registries: Sequence[RegistryStore], *, request_timeout: float
    ) -> None:
        self._client = client
        self._controller = controller
        self._registries = registries
        self._changed = asyncio.Event()
        # As upstream: the maximum queue wait is a quarter of the request timeout.
        self.control = FlowControl(controller, self._stats, request_timeout / 4)

    async def run(self) -> None:
        factory = SharedInformerFactory(self._client)
        handler = ResourceEventHandlerFuncs(
            add=lambda _: self._changed.set(),
            update=lambda *_: self._changed.set(),
            delete=lambda _: self._changed.set(),
        )
        for resource in (_SCHEMAS, _LEVELS):
            factory.for_resource(resource).add_event_handler(handler)
        async with factory, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run())
            await factory.wait_for_cache_sync()
            schemas, levels = factory.lister(_SCHEMAS), factory.lister(_LEVELS)
            while True:
                self._changed.clear()
                self._controller.configure(schemas.list(), levels.list())
                await self._changed.wait()

    def _stats(self, resource: GroupResource) -> ResourceStats | None:
        for registry in self._registries:
            if registry.resource.group_resource == resource:
                return ResourceStats(registry.known_count, registry.watcher_count)
        return None
