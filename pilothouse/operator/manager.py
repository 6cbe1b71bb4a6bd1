"""Manager: runs reconcilers on one or several clusters, with shared caches, leader election and health endpoints.

Guarantees: caches are warm on every replica, and only the leader reconciles. A replica that loses its lease writes
nothing more, cancels its reconciles, and competes again. `stop` starts no further reconcile and lets running ones
finish within `graceful_shutdown_timeout`.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.kubeconfig import SERVICE_ACCOUNT, load_config
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.events.event import EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.idleness import PROGRAMS
from pilothouse.client.leaderelection.elector import ElectionTimes, LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaseLock, new_identity
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import name_of
from pilothouse.machinery.server_errors import ServiceUnavailable
from pilothouse.operator.cluster import RETRY, Cluster, GuardedTransport, NotLeading
from pilothouse.operator.controller import ReconcilerController, until_set
from pilothouse.operator.endpoints import Check, EndpointServer, HealthEndpoints, parse_address
from pilothouse.operator.kinds import AnyKind, classes_of, definitions, gvk_of
from pilothouse.operator.logs import LogFormat, configure_logging
from pilothouse.operator.metrics import ControllerMetrics, count_client_requests
from pilothouse.operator.reconciler import Reconciler, kinds_of_reconciler
from pilothouse.operator.webhooks import (
    CertifiedAddress,
    WebhookOptions,
    conversion_kinds,
    has_webhooks,
    is_webhooks_only,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from pilothouse.operator.webhook_server import WebhookServer

logger = logging.getLogger(__name__)

DEFAULT_ADDRESS = ":8080"
_CANCEL_TIMEOUT = 5.0
_EXIT_MARGIN = 20.0

TERM: ContextVar[int] = ContextVar("the term of leadership in which a task was started")
"""A reconcile that outlives its term writes nothing, even if the manager leads again."""

Connection: TypeAlias = ClientConfig | Client
Runnable: TypeAlias = Callable[["Manager"], Awaitable[None]]
"""Work beside the reconcilers, on the leader only: runs until cancelled."""


class Manager:
    """Runs reconcilers until stopped: `run()` in a program, `async with` in tests.

    `config` is a configuration or a client; default: $KUBECONFIG, ~/.kube/config or the pod's service account.
    `clusters` names several clusters instead; the first holds the lease. `namespaces` restricts the caches of
    namespaced kinds. `leader_election` is True, a lease name, or "namespace/name". `bind` is the address of /healthz,
    /readyz and /metrics: by default :8080 for `run`, and none for `async with`. `install_crds` applies the definitions
    of the reconcilers' kinds at start. `managed_fields` keeps metadata.managedFields in the caches, which need more
    memory then. `webhooks` is the address of declared webhooks; by default, a pod serves them
    for the Service with the manager's name, and other processes serve them for an API server on the same machine.

    >>> import asyncio
    >>> from pilothouse.operator import Manager, Reconciler, kind, to_json
    >>> reconciled = asyncio.Event()
    >>> @kind(group="demo.example.com", version="v1", status=True)
    ... class Boat:
    ...     port: str = ""
    >>> class BoatReconciler(Reconciler[Boat]):
    ...     async def reconcile(self, boat: Boat) -> None:
    ...         reconciled.set()
    >>> async with Manager(reconcilers=[BoatReconciler], config=api.config(), install_crds=True) as manager:
    ...     await manager.wait_ready()
    ...     boats = await manager.cluster().resource(Boat, "default")
    ...     _ = await boats.create(to_json(Boat(metadata={"name": "ann"})))
    ...     print("reconciled:", await reconciled.wait())
    reconciled: True
    """

    def __init__(
        self,
        reconcilers: Iterable[type[Reconciler[Any]] | Reconciler[Any]] = (),
        *,
        name: str = "",
        config: Connection | None = None,
        clusters: Mapping[str, Connection] | None = None,
        namespaces: Sequence[str] = (),
        leader_election: bool | str = False,
        election_times: ElectionTimes = ElectionTimes(),  # noqa: B008  (immutable)
        bind: str | None = None,
        webhooks: WebhookOptions | CertifiedAddress | None = None,
        install_crds: bool = False,
        graceful_shutdown_timeout: float = 30.0,
        resync_period: float = 0.0,
        managed_fields: bool = False,
        qps: float = 0.0,
        runnables: Sequence[Runnable] = (),
        clock: Clock = REAL_CLOCK,
    ) -> None:
        if config is not None and clusters is not None:
            raise ValueError("config and clusters exclude each other: name the cluster in clusters")
        self._reconcilers = [made if isinstance(made, Reconciler) else made() for made in reconcilers]
        self.name = name or _default_name(self._reconcilers)
        self.runnables = list(runnables)
        self.namespaces = tuple(namespaces)
        self.bind = bind
        self.install_crds = install_crds
        self.leader_election = leader_election
        self.healthz: dict[str, Check] = {"ping": lambda: None}
        """Health checks by name; add your own before the start."""
        self.readyz: dict[str, Check] = {"caches": self._check_synced}
        """Readiness checks by name; add your own before the start."""
        self._connections = clusters if clusters is not None else {"": config}
        self._election, self._election_times = leader_election, election_times
        self._shutdown_timeout = graceful_shutdown_timeout
        self._resync_period, self._qps, self._clock = resync_period, qps, clock
        self._managed_fields = managed_fields
        self._stop = asyncio.Event()
        self._opened = AsyncExitStack()
        self._clusters: dict[str, Cluster] = {}
        self._controllers: list[ReconcilerController] = []
        self._endpoints: EndpointServer | None = None
        self._webhook_options = webhooks
        self._webhooks: WebhookServer | None = None
        self._elector: LeaderElector | None = None
        self._term = False
        self._terms = 0
        self._abandoned = False
        self._preparing: list[asyncio.Task[None]] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None

    @cached_property
    def registry(self) -> CollectorRegistry:
        """Prometheus registry of this manager, served at /metrics; register your own metrics before the start."""
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()

    @property
    def user_agent(self) -> str:
        """User-Agent header of the manager's requests."""
        return self.name

    @property
    def port(self) -> int:
        """Port of the endpoints; 0 without endpoints."""
        return 0 if self._endpoints is None else self._endpoints.port

    @property
    def reconciler_types(self) -> list[type[Reconciler[Any]]]:
        """The classes of the reconcilers."""
        return [type(reconciler) for reconciler in self._reconcilers]

    @property
    def webhook_url(self) -> str:
        """URL of the webhooks of a started manager; empty without webhooks."""
        return "" if self._webhooks is None else self._webhooks.url

    @property
    def is_leading(self) -> bool:
        """Whether this manager reconciles."""
        return self._term

    @property
    def reconcilers(self) -> list[Reconciler[Any]]:
        """The running reconcilers of each cluster."""
        return [controller.reconciler for controller in self._controllers]

    def cluster(self, name: str = "") -> Cluster:
        """Return a cluster of the started manager; default: the first. Raises KeyError."""
        return self._clusters[name] if name else next(iter(self._clusters.values()))

    # Life cycle

    def run(self, *, log_format: LogFormat | None = None) -> None:
        """Run until SIGTERM or SIGINT. A second signal ends the process at once."""
        from pilothouse.machinery.platform import new_event_loop

        configure_logging(log_format)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        loop, killers = asyncio.get_running_loop(), list[threading.Timer]()

        def on_signal(number: int, frame: FrameType | None) -> None:
            if killers:
                os._exit(128 + number)
            killers.append(threading.Timer(self._shutdown_timeout + _EXIT_MARGIN, _exit_after_hang))
            killers[0].daemon = True
            killers[0].start()
            loop.call_soon_threadsafe(self._stop.set)

        # Python's own handlers also run while a reconcile blocks the event loop.
        handled = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
        previous = {number: signal.signal(number, on_signal) for number in handled}
        try:
            await self.start(bind=self.bind or DEFAULT_ADDRESS)
            count_client_requests(self.registry)
            await self.wait()
        finally:
            await self.stop()
            for number, handler in previous.items():
                signal.signal(number, handler)
            for killer in killers:
                killer.cancel()
            if self._abandoned:
                _exit_after_hang()  # the event loop would wait for abandoned reconciles

    async def __aenter__(self) -> Manager:
        try:
            await self.start(bind=self.bind)
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self, *, bind: str | None = None) -> None:
        """Connect, install definitions, serve the endpoints, and begin to work in the background.

        Raises ConfigError without a configuration, StatusError, OSError if the address of the endpoints is in use.
        """
        metrics = ControllerMetrics(self.registry)
        unguarded = {name: self._connect(connection) for name, connection in self._connections.items()}
        for name, client in unguarded.items():
            guarded = copy.copy(client)
            guarded.transport = GuardedTransport(client.transport, self._check_leading)
            self._clusters[name] = Cluster(
                guarded,
                name=name,
                namespaces=self.namespaces,
                resync_period=self._resync_period,
                managed_fields=self._managed_fields,
                clock=self._clock,
            )
        self._controllers = [
            self._controller(reconciler, cluster, metrics)
            for reconciler in self._reconcilers
            for cluster in self._clusters.values()
            if not is_webhooks_only(type(reconciler))
            if type(reconciler).clusters is None or cluster.name in (type(reconciler).clusters or ())
        ]
        if bind is not None:
            await self._serve_endpoints(bind)
        if self.install_crds:
            for client in unguarded.values():
                await self._install(client)
        if self._election:
            self._elector = self._new_elector(next(iter(unguarded.values())), metrics)
            self.healthz["leaderElection"] = self._elector.check
        if any(map(has_webhooks, self.reconciler_types)):
            await self._serve_webhooks(next(iter(unguarded.values())))
        self.loop = asyncio.get_running_loop()
        PROGRAMS.add(self)
        self._preparing = [asyncio.ensure_future(controller.prepare()) for controller in self._controllers]
        self._running = asyncio.ensure_future(self._elect(metrics))
        logger.info("manager %s started", self.name)

    async def wait_ready(self) -> None:
        """Return when every kind is served and all caches have synced. Raises the error of a failed manager."""
        assert self._running is not None, "start the manager first"
        ready = asyncio.ensure_future(_all_done(self._preparing))
        await asyncio.wait({ready, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()
        await ready

    async def wait(self) -> None:
        """Return when the manager was told to stop. Raises the error of a failed manager."""
        assert self._running is not None, "start the manager first"
        stopped = asyncio.ensure_future(until_set(self._stop))
        await asyncio.wait({stopped, self._running}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._running.done():
            self._running.result()

    async def stop(self) -> None:
        """Stop within `graceful_shutdown_timeout`. Idempotent. Raises the error of a failed manager."""
        self._stop.set()
        for task in self._preparing:
            task.cancel()
        try:
            if self._running is not None:
                if not self._term:
                    self._running.cancel()
                await self._end([self._running], self._shutdown_timeout + _CANCEL_TIMEOUT)
        finally:
            PROGRAMS.remove(self)
            running, self._running = self._running, None
            for cluster in self._clusters.values():
                await cluster.close()
            if self._webhooks is not None:
                await self._webhooks.stop()
            if self._endpoints is not None:
                await self._endpoints.close()
            await self._opened.aclose()
        if running is not None and running.done() and not running.cancelled():
            running.result()

    def is_busy(self, within: float = 0.0) -> bool:
        """Whether a reconciler has an event, a queued object or a running reconcile, now or `within` seconds."""
        leads = not self._election or self._term
        return self._running is not None and leads and any(one.is_busy(within) for one in self._controllers)

    def enqueue(self, kind: AnyKind, key: str, *, cluster: str = "") -> None:
        """Reconcile the object of this key now, in every reconciler of its kind."""
        for controller in self._controllers:
            if controller.gvk == gvk_of(kind) and controller.cluster.name == (cluster or self.cluster().name):
                controller.enqueue(key)

    # Parts of the start

    def _connect(self, connection: Connection | None) -> Client:
        if isinstance(connection, Client):
            return connection
        config = replace(connection or load_config(), qps=self._qps, user_agent=self.name)
        client = connect(config, clock=self._clock)
        self._opened.push_async_callback(client.close)
        return client

    def _controller(
        self, reconciler: Reconciler[Any], cluster: Cluster, metrics: ControllerMetrics
    ) -> ReconcilerController:
        own = _bound(reconciler, cluster, self.name)
        return ReconcilerController(own, cluster, metrics=metrics, registry=self.registry, clock=self._clock)

    async def _serve_endpoints(self, bind: str) -> None:
        handler = HealthEndpoints(self.registry, healthz=self.healthz, readyz=self.readyz)
        self._endpoints = EndpointServer(handler)
        host, port = parse_address(bind)
        try:
            await self._endpoints.start(host, port)
        except OSError as error:
            if self.bind is not None:
                raise
            logger.warning("cannot serve /healthz, /readyz and /metrics at %s (%s): using a free port", bind, error)
            await self._endpoints.start(host, 0)
        logger.info("serving /healthz, /readyz and /metrics on port %d", self._endpoints.port)

    async def _install(self, client: Client) -> None:
        types = self.reconciler_types
        kinds = [kind for each in types for kind in (*kinds_of_reconciler(each), *conversion_kinds(each))]
        resource = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        for definition in definitions(*classes_of(kinds)):
            delay = RETRY.delays()
            while not self._stop.is_set():
                try:
                    await resource.apply(definition, field_manager=self.name, force=True)
                except (ConnectionFailed, ServiceUnavailable) as error:
                    message = "cannot install the CustomResourceDefinition %s, will try again"
                    log_failed_attempt(logger, error, message, name_of(definition))
                    await self._clock.sleep(delay())
                else:
                    logger.info("installed the CustomResourceDefinition %s", name_of(definition))
                    break

    async def _serve_webhooks(self, client: Client) -> None:
        """Serve the webhooks on every replica, leader or not."""
        from pilothouse.operator.webhook_server import WebhookServer, webhook_options

        options = webhook_options(self._webhook_options, self.name, client)
        if options is None:
            logger.warning(
                "webhooks are not served: %s cannot reach this process; pass Manager(webhooks=WebhookOptions(…))",
                client.host or "the API server",
            )
            return
        first = next(iter(self._clusters.values()))
        own = [controller.reconciler for controller in self._controllers if controller.cluster is first]
        own += [_bound(each, first, self.name) for each in self._reconcilers if is_webhooks_only(type(each))]
        self._webhooks = WebhookServer.of(self.name, own, options, registry=self.registry, clock=self._clock)
        await self._webhooks.start(client)
        logger.info("serving webhooks on port %d", self._webhooks.port)

    def _new_elector(self, client: Client, metrics: ControllerMetrics) -> LeaderElector:
        chosen = self._election if isinstance(self._election, str) else self.name
        namespace, _, lease = chosen.rpartition("/")
        lock = LeaseLock(client, namespace=namespace or _own_namespace(), name=lease, identity=new_identity())
        metrics.leading.labels(lock.name).set(0)
        return LeaderElector(lock, times=self._election_times, clock=self._clock)

    # Leading

    async def _elect(self, metrics: ControllerMetrics) -> None:
        if self._elector is None:
            await self._lead()
            return
        lease = metrics.leading.labels(
            (self._election if isinstance(self._election, str) else self.name).rpartition("/")[2]
        )

        async def lead() -> None:
            lease.set(1)
            try:
                await self._lead()
            finally:
                lease.set(0)

        while not self._stop.is_set():
            await self._elector.run(lead)
            if not self._stop.is_set():
                logger.warning("manager %s lost its lease and competes for it again", self.name)

    async def _lead(self) -> None:
        """Reconcile until `stop` or until cancelled, which means that the lease is lost."""
        self._term = True
        self._terms += 1
        TERM.set(self._terms)
        recorders = {
            name: EventRecorder(cluster.client, EventSource(self.name), clock=self._clock)
            for name, cluster in self._clusters.items()
        }
        recording = [asyncio.ensure_future(recorder.run()) for recorder in recorders.values()]
        controlling = [
            asyncio.ensure_future(
                controller.run(recorders[controller.cluster.name], stop_timeout=self._shutdown_timeout)
            )
            for controller in self._controllers
        ]
        running = [asyncio.ensure_future(_runnable(runnable, self)) for runnable in self.runnables]
        working = [*controlling, *running]
        stopped = asyncio.ensure_future(until_set(self._stop))
        try:
            done = await _first_to_end_work(
                {stopped, *working[: len(self._controllers)]}, working[len(self._controllers) :]
            )
            for controller in self._controllers:
                controller.stop()
            for task in running:
                task.cancel()
            await self._end(working, self._shutdown_timeout)
            if not await self._flushed(recorders.values()):
                logger.warning("manager %s could not write all events before its end", self.name)
            for task in done - {stopped}:
                task.result()
        except asyncio.CancelledError:
            self._term = False  # no write after this line
            raise
        finally:
            self._term = False
            for task in (stopped, *recording, *working):
                task.cancel()
            await self._end([*recording, *working], 0.0)

    async def _flushed(self, recorders: Iterable[EventRecorder]) -> bool:
        flushing = [asyncio.ensure_future(recorder.flush()) for recorder in recorders]
        _, late = await asyncio.wait(flushing, timeout=_CANCEL_TIMEOUT)
        for task in late:
            task.cancel()
        return not late

    async def _end(self, tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
        """Wait for the tasks, cancel them after `seconds`, and abandon them if they ignore the cancellation."""
        pending = set(tasks)
        if pending and seconds > 0:
            _, pending = await asyncio.wait(pending, timeout=seconds)
        for task in pending:
            task.cancel()
        if pending:
            _, pending = await asyncio.wait(pending, timeout=_CANCEL_TIMEOUT)
        self._abandoned = self._abandoned or bool(pending)
        for controller in self._controllers if pending else ():
            for key, reconcile_id in controller.running.items():
                message = "controller %s: the reconcile %s of %s ignores its cancellation and is abandoned"
                logger.error(message, controller.name, reconcile_id, key)

    # Checks

    def _check_leading(self) -> None:
        """Raises NotLeading unless this manager may write."""
        if self._elector is None:
            return
        if not self._term or TERM.get(self._terms) != self._terms:
            raise NotLeading(f"manager {self.name} does not lead, and writes nothing")
        try:
            self._elector.check()
        except RuntimeError as error:
            raise NotLeading(str(error)) from None

    def _check_synced(self) -> None:
        waiting = [one.name for one, task in zip(self._controllers, self._preparing, strict=False) if not task.done()]
        if waiting or len(self._preparing) < len(self._controllers):
            raise RuntimeError(f"waiting for the caches of {', '.join(waiting) or 'all controllers'}")


async def _first_to_end_work(
    essential: set[asyncio.Task[None]], optional: Sequence[asyncio.Task[None]]
) -> set[asyncio.Task[None]]:
    """Return the finished tasks as soon as an essential task ends or an optional task fails."""
    pending = essential | set(optional)
    while True:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        if ended := {task for task in done if task in essential or task.cancelled() or task.exception()}:
            return ended


async def _all_done(tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


async def _runnable(runnable: Runnable, manager: Manager) -> None:
    await runnable(manager)


def _bound(reconciler: Reconciler[Any], cluster: Cluster, name: str) -> Reconciler[Any]:
    """Return a copy of the reconciler that works for the cluster."""
    own = copy.copy(reconciler)
    own.cluster, own.manager_name = cluster, name
    return own


def _default_name(reconcilers: Sequence[Reconciler[Any]]) -> str:
    if not reconcilers:
        return "operator"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(reconcilers[0]).__name__.removesuffix("Reconciler") or "my")
    return f"{words.lower()}-operator"


def _own_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    """Return the namespace of the pod ($POD_NAMESPACE or its service account); "default" outside of a cluster."""
    if namespace := os.environ.get("POD_NAMESPACE"):
        return namespace
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _exit_after_hang() -> None:
    logger.error("the manager did not stop in time, and is ended")
    os._exit(1)
