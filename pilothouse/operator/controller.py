"""The engine of one reconciler in one cluster: events → queue → reconcile, finalizers, status, metrics.

Guarantees: an object is reconciled by one worker at a time, after all caches have synced, in its newest known state.
Any exception of a reconcile, SystemExit and a stray CancelledError included, is a failure of that object only. A
mapping function that raises loses no other event. A status is written only if changed, never over a concurrent change,
and an event that only reports our own status write leads to no reconcile.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pilothouse.builder.types.wire import apply_changes
from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import Registration, SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.controller import Controller, Requeue, TryAgain
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.kinds.deletion import finalizers_of, has_finalizer, is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, deep_equal, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.operator.cluster import Cluster, KindCache, is_kept
from pilothouse.operator.fence import version_number
from pilothouse.operator.kinds import copy_json, gvk_of, reader_of, status_of
from pilothouse.operator.metrics import RESULTS, ControllerMetrics
from pilothouse.operator.predicates import Event, Passes, passes_all
from pilothouse.operator.reconciler import (
    Keys,
    MapFunction,
    Reconciler,
    Result,
    TerminalError,
    kind_of_reconciler,
    kinds_of_reconciler,
    name_of_reconciler,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from pilothouse.client.events.recorder import EventRecorder

logger = logging.getLogger(__name__)

STATUS_TRIES = 5

RECONCILE: ContextVar[Json | None] = ContextVar("the running reconcile", default=None)
"""controller, object and reconcileID of the running reconcile, for logs."""


class ReconcilePanic(PilothouseError):
    """A reconcile raised an exception that would have ended its worker."""


class ReconcilerController:
    """Runs one reconciler in one cluster. `prepare` starts the caches; `run` reconciles until `stop`."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        cluster: Cluster,
        *,
        metrics: ControllerMetrics,
        registry: CollectorRegistry,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self.reconciler = reconciler
        self.cluster = cluster
        self._cls = type(reconciler)
        self._kind = kind_of_reconciler(self._cls)
        self.gvk = gvk_of(self._kind)
        self._kinds = [gvk_of(kind) for kind in kinds_of_reconciler(self._cls)]
        self._read = reader_of(self._kind)
        self.name = name_of_reconciler(self._cls) + (f"@{cluster.name}" if cluster.name else "")
        self._metrics, self._registry, self._clock = metrics, registry, clock
        self._primary: KindCache | None = None
        self._controller: Controller[str] | None = None
        self._own_writes: dict[str, dict[str, str]] = {}  # key → version after our write → version before
        self._stopping = asyncio.Event()
        self._registrations: list[tuple[SharedIndexInformer, Registration]] = []
        self.running: dict[str, str] = {}
        """Running reconciles: key → id."""
        metrics.register(self.name, self._cls.concurrency)
        # Looking up a series by its labels costs more than counting in it.
        self._active, self._seconds = metrics.active.labels(self.name), metrics.seconds.labels(self.name)
        self._outcomes = {result: metrics.total.labels(self.name, result) for result in RESULTS}

    @property
    def caches(self) -> list[KindCache]:
        """Caches of the declared kinds, as far as the server serves them."""
        served = []
        for kind in kinds_of_reconciler(self._cls):
            try:
                served.append(self.cluster.cached(kind))
            except LookupError:
                continue
        return served

    async def prepare(self) -> None:
        """Start the caches of all declared kinds, and wait for their initial lists. Waits for missing kinds."""
        caches = [await self.cluster.cache(kind) for kind in kinds_of_reconciler(self._cls)]
        self._primary = caches[0]
        for cache in caches:
            await cache.wait_synced()

    async def _prepared(self) -> bool:
        """Prepare; return False if the controller was stopped meanwhile."""
        preparing, stopped = asyncio.ensure_future(self.prepare()), asyncio.ensure_future(until_set(self._stopping))
        try:
            await asyncio.wait({preparing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                return False
            preparing.result()
            return True
        finally:
            preparing.cancel()
            stopped.cancel()

    def is_busy(self, within: float = 0.0) -> bool:
        """Whether an event, a queued object or a running reconcile is left, or due `within` seconds."""
        if self._controller is None:
            return not self._stopping.is_set() and not self.cluster.missing & set(self._kinds)
        pending = any(informer.pending for cache in self.caches for informer in cache.informers.values())
        synced = all(registration.has_synced() for _, registration in self._registrations)
        return pending or not synced or bool(self.running) or self._controller.queue.is_busy(within)

    async def run(self, recorder: EventRecorder, *, stop_timeout: float) -> None:
        """Reconcile until `stop`, then let running reconciles finish within `stop_timeout` seconds."""
        if not await self._prepared():
            return
        self.reconciler._recorder = recorder
        queue: RateLimitingQueue[str] = RateLimitingQueue(
            self.name, rate_limiter=self.reconciler.rate_limiter(), registry=self._registry, clock=self._clock
        )
        registrations = self._registrations = list(self._register(queue))
        self._controller = Controller(
            self.name,
            self._process,
            caches=tuple(registration for _, registration in registrations),
            workers=self._cls.concurrency,
            queue=queue,
            stop_timeout=stop_timeout,
            clock=self._clock,
        )
        logger.info("controller %s started with %d workers", self.name, self._cls.concurrency)
        try:
            await self._controller.run()
        finally:
            queue.shut_down()
            for informer, registration in registrations:
                informer.remove_event_handler(registration)
            self._controller = None

    def stop(self) -> None:
        """Start no further reconcile. Queued objects are dropped: the next start lists all objects."""
        self._stopping.set()
        if self._controller is not None:
            self._controller.stop()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def enqueue(self, key: str) -> None:
        """Reconcile an object now."""
        if self._controller is not None:
            self._controller.queue.add(key)

    # Events

    def _register(self, queue: RateLimitingQueue[str]) -> Iterable[tuple[SharedIndexInformer, Registration]]:
        def to_primary(event: Event, key: str) -> None:
            if not self._is_own_write(event, key) and passes_all(self._cls.predicates, event):
                queue.add(key)

        def to_owner(event: Event, key: str) -> None:
            for owner in dict.fromkeys(self._owner_key(state) for state in (event.old, event.new) if state is not None):
                if owner is not None:
                    queue.add(owner)

        yield from self._handle(self.cluster.cached(self._kind), to_primary)
        for kind in self._cls.owns:
            yield from self._handle(self.cluster.cached(kind), to_owner)
        for watch in self._cls.watches:
            mapped = self._mapped(queue, watch.to, watch.predicates, reader_of(watch.kind))
            yield from self._handle(self.cluster.cached(watch.kind), mapped)

    def _handle(
        self, cache: KindCache, handle: Callable[[Event, str], Awaitable[None] | None]
    ) -> Iterable[tuple[SharedIndexInformer, Registration]]:
        async def finish(pending: Awaitable[None], key: str) -> None:
            try:
                await pending
            except Exception as error:
                log_failed_attempt(logger, error, "controller %s: cannot map an event of %s", self.name, key)

        def deliver(event: Event, key: str) -> Awaitable[None] | None:
            try:
                pending = handle(event, key)
            except Exception as error:
                # Raised to the informer, the error would delay all further events.
                log_failed_attempt(logger, error, "controller %s: cannot map an event of %s", self.name, key)
                return None
            return None if pending is None else finish(pending, key)

        def deleted(obj: Deleted) -> Awaitable[None] | None:
            state = last_known_state(obj)
            return deliver(Event(state, None), deletion_handling_key(obj))

        handler = ResourceEventHandlerFuncs(
            add=lambda obj: deliver(Event(None, obj), meta_namespace_key(obj)),
            update=lambda old, new: deliver(Event(old, new), meta_namespace_key(new)),
            delete=deleted,
        )
        for informer in cache.informers.values():
            yield informer, informer.add_event_handler(handler)

    def _owner_key(self, obj: Json) -> str | None:
        """Return the key of the object's controller, if it is of the reconciled kind in any version."""
        owner = controller_of(obj)
        if owner is None or owner.get("kind") != self.gvk.kind or self._primary is None:
            return None
        if GroupVersion.parse(str(owner.get("apiVersion") or "")).group != self.gvk.group:
            return None
        namespace = namespace_of(obj) if self._primary.mapping.namespaced else ""
        return f"{namespace}/{owner['name']}" if namespace else str(owner["name"])

    def _mapped(
        self,
        queue: RateLimitingQueue[str],
        to: MapFunction | str,
        predicates: Sequence[Passes],
        read: Callable[[Json], Any],
    ) -> Callable[[Event, str], Awaitable[None] | None]:
        function: MapFunction = getattr(self.reconciler, to) if isinstance(to, str) else to

        def add(keys: Keys) -> None:
            for key in keys:
                queue.add(str(key))

        async def add_later(results: list[Keys | Awaitable[Keys]]) -> None:
            for result in results:
                add(await result if inspect.isawaitable(result) else result)

        def handle(event: Event, key: str) -> Awaitable[None] | None:
            if not passes_all(predicates, event):
                return None
            results = [function(read(copy_json(state))) for state in (event.old, event.new) if state is not None]
            if any(map(inspect.isawaitable, results)):
                return add_later(results)
            for result in results:
                add(result)  # type: ignore[arg-type]  # none is awaitable
            return None

        return handle

    def _is_own_write(self, event: Event, key: str) -> bool:
        """Whether the event reports nothing but a write of this controller, whose result the reconcile has seen."""
        writes = self._own_writes.get(key)
        if writes is None:
            return False
        if event.new is None:
            del self._own_writes[key]
            return False
        version = resource_version_of(event.new)
        base = writes.get(version)
        for old in [result for result in writes if version_number(result) <= version_number(version)]:
            del writes[old]
        if not writes:
            del self._own_writes[key]
        return base is not None and event.old is not None and resource_version_of(event.old) == base

    def _record_own_write(self, base: Json, result: Json) -> None:
        versions = resource_version_of(base), resource_version_of(result)
        if versions[0] != versions[1]:
            self._own_writes.setdefault(meta_namespace_key(result), {})[versions[1]] = versions[0]

    # Reconciles

    async def _process(self, key: str) -> Requeue | None:
        if self._stopping.is_set():
            return None
        if key in self.running:
            raise TryAgain("an abandoned reconcile of the object is still running")
        started, reconcile_id = self._clock.now(), str(uuid.uuid4())
        RECONCILE.set({"controller": self.name, "object": key, "reconcileID": reconcile_id})
        self.running[key] = reconcile_id
        self._active.inc()
        outcome = "error"
        try:
            result = await self._guarded(key)
            if result is None or (not result.requeue and result.requeue_after <= 0):
                outcome = "success"
                return None
            if result.requeue_after > 0:
                outcome = "requeue_after"
                return Requeue(result.requeue_after)
            outcome = "requeue"
            raise TryAgain("requeue requested")
        except TryAgain:
            outcome = "requeue"
            raise
        except TerminalError as error:
            self._metrics.terminal.labels(self.name).inc()
            logger.error("controller %s: %s is not retried: %s", self.name, key, error)
            return None
        finally:
            if outcome == "error":
                self._metrics.errors.labels(self.name).inc()
            self._outcomes[outcome].inc()
            self._seconds.observe(self._clock.now() - started)
            self._active.dec()
            self.running.pop(key, None)

    async def _guarded(self, key: str) -> Result | None:
        """Reconcile; convert exceptions that would end the worker into failures. Raises TimeoutError."""
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(self._cls.timeout):
                return await self._reconcile(key)
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            self._metrics.panics.labels(self.name).inc()
            raise ReconcilePanic("the reconcile raised CancelledError, but nobody cancelled it") from error
        except (SystemExit, GeneratorExit) as error:
            self._metrics.panics.labels(self.name).inc()
            raise ReconcilePanic(f"the reconcile raised {type(error).__name__}({error})") from error

    async def _reconcile(self, key: str) -> Result | None:
        assert self._primary is not None
        cached = self._primary.get(key)
        if cached is None:
            return None
        finalizer = self._cls.finalizer
        if is_deleting(cached):
            if finalizer and has_finalizer(cached, finalizer):
                return await self._finalize(cached)
            if not self._cls.reconcile_deleting:
                return None
        elif finalizer and not has_finalizer(cached, finalizer):
            try:
                finalized = await self._write_finalizers(cached, [*finalizers_of(cached), finalizer])
            except NotFound:
                return None
            self._record_own_write(cached, finalized)
            cached = finalized
        return await self._call(self.reconciler.reconcile, cached)

    async def _finalize(self, cached: Json) -> Result | None:
        result = await self._call(self.reconciler.finalize, cached)
        if result is not None and (result.requeue or result.requeue_after > 0):
            return result
        for attempt in range(STATUS_TRIES):
            remaining = [name for name in finalizers_of(cached) if name != self._cls.finalizer]
            try:
                cached = await self._write_finalizers(cached, remaining)
                break
            except NotFound:
                self.cluster.gone(cached)
                return None
            except Conflict:
                if attempt == STATUS_TRIES - 1:
                    raise
                cached = await self._newest(cached)
        if not is_kept(cached):
            self.cluster.gone(cached)
        return None

    async def _newest(self, obj: Json) -> Json:
        """Return the object's state on the server. Raises NotFound, also for another object of this name."""
        newest = await self.cluster.read(obj)
        if uid_of(newest) != uid_of(obj):
            raise NotFound(f"{meta_namespace_key(obj)} was replaced by another object")
        return newest

    async def _write_finalizers(self, obj: Json, finalizers: list[str]) -> Json:
        """Write the finalizers unless the object has changed. Raises Conflict, NotFound."""
        version = {"resourceVersion": resource_version_of(obj), "uid": uid_of(obj)}
        return await self.cluster.patch(obj, {"metadata": {**version, "finalizers": finalizers or None}})

    async def _call(self, method: Callable[[Any], Awaitable[Result | None]], cached: Json) -> Result | None:
        """Call the author's method on a copy, then write the status, whatever the outcome."""
        typed = self._read(copy_json(cached))
        try:
            result = await method(typed)
        except Exception as error:
            try:
                await self._write_status(cached, typed)
            except Exception as failure:
                error.add_note(f"the status was not written either: {failure}")
            raise
        await self._write_status(cached, typed)
        return result

    async def _write_status(self, cached: Json, typed: Any) -> None:
        """Write the status if it changed. A concurrent change is merged: conditions by type, other fields by name."""
        assert self._primary is not None
        before, after = cached.get("status") or {}, status_of(typed)
        if deep_equal(before, after):
            return
        base = self._primary.get(meta_namespace_key(cached))
        if base is None or uid_of(base) != uid_of(cached):
            return
        for attempt in range(STATUS_TRIES):
            status = merged_status(base.get("status") or {}, before, after)
            if deep_equal(status, base.get("status") or {}):
                return
            try:
                written = await self.cluster.update({**base, "status": status}, subresource="status")
            except Conflict:
                if attempt == STATUS_TRIES - 1:
                    raise
                try:
                    base = await self._newest(base)
                except NotFound:
                    return
            except NotFound:
                return
            else:
                self._record_own_write(base, written)
                return


async def until_set(event: asyncio.Event) -> None:
    await event.wait()


def merged_status(base: Json, before: Json, after: Json) -> Json:
    """Apply the difference between `before` and `after` to `base`. Conditions are merged by type."""
    merged = copy_json(base)
    without = [{key: value for key, value in status.items() if key != "conditions"} for status in (before, after)]
    apply_changes(merged, *without)
    old, new = ({one["type"]: one for one in status.get("conditions") or ()} for status in (before, after))
    if old != new or [*old] != [*new]:
        kept = [one for one in merged.get("conditions") or () if one["type"] in new or one["type"] not in old]
        changed = {type_: one for type_, one in new.items() if old.get(type_) != one}
        present = {one["type"] for one in kept}
        conditions = [changed.get(one["type"], one) for one in kept]
        conditions += [one for type_, one in changed.items() if type_ not in present]
        if conditions:
            merged["conditions"] = conditions
        else:
            merged.pop("conditions", None)
    return merged
