"""Runs the server: certificates and store → config → chain → prepare → serve, until stopped.

Every opened resource is closed in reverse order, however the run ends.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.filters.chain import handler_chain
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.hooks import HookFailed
from pilothouse.apiserver.server.run import RunConfig, Runner
from pilothouse.apiserver.server.server import PreparedAPIServer
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.controlplane.bench import new_scope
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.controlplane.chain import create_server_chain
from pilothouse.controlplane.config import Config, new_config
from pilothouse.controlplane.data_dir import DataDir, DataDirError
from pilothouse.controlplane.errors import StartFailed, start_failures
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.ports import host_port, open_ports
from pilothouse.controlplane.serving import Certificates, secure_serving
from pilothouse.controlplane.serving_place import ServingPlace
from pilothouse.controlplane.shared_keys.source import KeySource, follow, key_source, settle
from pilothouse.controlplane.signals import stop_on_signal
from pilothouse.controlplane.storage import backend_of, encrypted, open_bare_store
from pilothouse.controlplane.stored_version import settle_version
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.platform import new_event_loop

if TYPE_CHECKING:
    from pilothouse.bench.bench import Bench

_RENEW_EVERY = 12 * 3600.0

_COLLECT_AFTER = (5000, 5, 10)
"""Thresholds of gc.set_threshold. A young collection takes 2 ms, an old collection 6 ms."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Location of a ready server."""

    url: str
    kubeconfig: str
    data_dir: str
    storage: str


@dataclass(frozen=True, slots=True)
class Ready(Announcement):
    """Location of a ready server in this process."""

    handler: Handler
    """The handler behind the secure port, for calls without a socket."""
    snapshots: Snapshots
    """Saves and restores the store."""
    bench: Bench | None = None
    """The test bench of a server with --testing."""


def run(options: CompletedOptions, ready: Callable[[Ready], None]) -> None:
    """Serve until a signal; return after an orderly shutdown. Raises StartFailed."""

    async def until_signal() -> None:
        await serve(options, stop_on_signal(), ready)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(until_signal())


async def serve(options: CompletedOptions, stop: asyncio.Event, ready: Callable[[Ready], None]) -> None:
    """Serve in this event loop until `stop` is set; return after an orderly shutdown. Raises StartFailed."""
    if options.pilothouse.worker_count > 1:
        raise StartFailed("--workers: several workers need a process of their own")
    with start_failures(CertificateError, DataDirError, HookFailed, StorageError, ValueError):
        async with AsyncExitStack() as opened:
            scope = new_scope(options)  # before any code reads the clock
            opened.callback(DataDir.open(Path(options.pilothouse.data_dir)).close)
            timeout = options.generic.storage_initialization_timeout
            bare = await open_bare_store(options.etcd, Path(options.pilothouse.data_dir), timeout=timeout)
            opened.push_async_callback(bare.close)
            keys = key_source(options, bare)
            await settle(keys, Path(options.pilothouse.data_dir))
            certificates = Certificates.ensure(options)
            store = await encrypted(options.etcd, bare)
            opened.push_async_callback(store.close)
            if options.etcd.capabilities.local:
                await settle_version(Path(options.pilothouse.data_dir), bare, options.etcd.prefix)
            config = new_config(options, store, scope=scope)
            await Process(config, certificates, keys).run(stop, ready)


async def serve_as_worker(
    options: CompletedOptions, store: Store, place: ServingPlace, stop: asyncio.Event, ready: Callable[[Ready], None]
) -> None:
    """Serve like `serve`, as one of several processes. The caller owns the data directory and `store`."""
    with start_failures(CertificateError, HookFailed, StorageError, ValueError):
        keys, certificates = key_source(options, store), Certificates.made_by_another(options)
        if place.leads:
            await settle(keys, Path(options.pilothouse.data_dir))
            certificates = Certificates.ensure(options)
            if options.etcd.capabilities.local:
                await settle_version(Path(options.pilothouse.data_dir), store, options.etcd.prefix)
        config = new_config(options, await encrypted(options.etcd, store), place)
        await Process(config, certificates, keys).run(stop, ready)


class Process:
    """A server chain with its ports."""

    def __init__(self, config: Config, certificates: Certificates, keys: KeySource) -> None:
        """Prepare the chain. `keys` is the source of the certificates. Raises ValueError, OSError."""
        self._options = config.options
        self._place = config.place
        self._in_flight = config.chain.in_flight
        self._snapshots = config.snapshots
        self._bench = config.bench
        self._keys = keys
        renewing = {"certificates": self._renew_certificates} if config.place.leads else {}
        self._background = {**renewing, **config.background}
        self._certificates = certificates
        self._prepared = prepare(config)
        api = self._prepared.server.handler
        self._handler = handler_chain(api, config.chain)
        self._ports = open_ports(
            api, self._handler, config, secure_serving(config.options.secure_serving, certificates.files)
        )

    async def run(self, stop: asyncio.Event, ready: Callable[[Ready], None]) -> None:
        """Serve until `stop` is set. Raises StartFailed, HookFailed."""
        config = RunConfig(
            serving=self._ports.in_order,
            drain=self._in_flight.drain,
            run_options=self._options.generic,
            background=self._background,
            checks_of_peers=self._place.health_checks,
            can_serve=self._place.can_serve,
        )
        await Runner(self._prepared, config).run(stop, ready=lambda: ready(self._announce()))

    async def _renew_certificates(self) -> None:
        """Renew certificates on disk; new connections load the new files."""

        async def renew() -> None:
            await asyncio.to_thread(Certificates.ensure, self._options)
            self._write_kubeconfig()

        await follow(self._keys, Path(self._options.pilothouse.data_dir), renew, at_least_every=_RENEW_EVERY)

    def _announce(self) -> Ready:
        self._write_kubeconfig()
        paths, etcd = self._options.pilothouse, self._options.etcd
        location = backend_of(etcd).location(etcd)
        parts = (self._handler, self._snapshots, self._bench)
        return Ready(self._url, paths.kubeconfig_out, paths.data_dir, location, *parts)

    @property
    def _url(self) -> str:
        return f"https://{host_port(self._options.generic.advertise_address, self._ports.secure.number)}"

    def _write_kubeconfig(self) -> None:
        path = Path(self._options.pilothouse.kubeconfig_out)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._certificates.write_kubeconfig(path, self._url)


def collect_garbage_from_now_on() -> None:
    """Freeze the objects of start-up, and enable garbage collection.

    In-flight requests hold thousands of objects that reference counting frees on completion. With Python's default
    threshold of 700, collections would scan and promote these objects (docs/decisions/request-cost.md).
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


def prepare(config: Config) -> PreparedAPIServer:
    return create_server_chain(config).prepare_run()
