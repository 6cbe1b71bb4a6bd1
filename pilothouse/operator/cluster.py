"""One cluster of a manager: a client for writes, shared caches for reads, and the fence between them.

Reads come from memory and never see a state older than the operator's own writes. Writes go to the API server, and are
refused once the manager no longer leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import orjson

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX, CompactIndexer
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key, split_meta_namespace_key
from pilothouse.client.cache.list_watch import ListerWatcher, OpenWatch
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.rest.options import DeleteOptions, ListOptions, PatchType
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport
from pilothouse.client.rest_mapper import NoMatch, RESTMapper, RESTMapping
from pilothouse.client.wait import Backoff
from pilothouse.kinds.owners import controller_of, controller_ref, owner_references
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, uid_of
from pilothouse.machinery.selectors import labels
from pilothouse.machinery.status_error import PilothouseError, StatusError
from pilothouse.operator.fence import Fence
from pilothouse.operator.kinds import AnyKind, copy_json, gvk_of

logger = logging.getLogger(__name__)

OWNER_INDEX = "owner"
RETRY = Backoff(duration=0.1, factor=1.5, jitter=0.1, steps=20, cap=5.0)
_READS = ("GET", "HEAD", "OPTIONS")


class NotLeading(PilothouseError):
    """A write was refused because this process no longer holds the lease of its manager.

    >>> from pilothouse.errors import NotLeading
    >>> async def write(reconciler, obj):
    ...     try:
    ...         await reconciler.update(obj)
    ...     except NotLeading:
    ...         print("another replica leads")
    """


class AlreadyOwned(PilothouseError):
    """The object to apply has another controller.

    >>> from pilothouse.errors import AlreadyOwned
    >>> async def apply(reconciler, owner, obj):
    ...     try:
    ...         await reconciler.apply(owner, obj)
    ...     except AlreadyOwned as error:
    ...         reconciler.event(owner, "AlreadyOwned", str(error), type="Warning")
    """


class KindCache:
    """Cache of a kind in a cluster: an informer for all namespaces, or an informer for each namespace."""

    def __init__(
        self,
        mapping: RESTMapping,
        informers: dict[str, SharedIndexInformer],
        clock: Clock,
        *,
        managed_fields: bool = False,
    ) -> None:
        self.mapping = mapping
        self._managed_fields = managed_fields
        self.informers = informers
        """By namespace; "" is the whole cluster."""
        self._fences = {namespace: Fence(_position(informer), clock=clock) for namespace, informer in informers.items()}
        self._applied: dict[str, _Applied] = {}
        for informer in informers.values():
            informer.add_event_handler(ResourceEventHandlerFuncs(delete=self._forget))

    async def wait_synced(self) -> None:
        """Return when the initial lists are in the cache."""
        for informer in self.informers.values():
            await informer.wait_synced()

    def has_synced(self) -> bool:
        return all(informer.has_synced() for informer in self.informers.values())

    def get(self, key: str) -> Json | None:
        """Return a copy of the newest known state; None if the object does not exist."""
        namespace = self._place(split_meta_namespace_key(key).namespace)
        informer = self.informers.get(namespace)
        if informer is None:
            return None
        cached = informer.indexer.get_by_key(key)
        visible = self._fences[namespace].visible(key, cached)
        return visible if visible is None or visible is cached else copy_json(visible)

    def list(self, namespace: str = "", selector: str = "", owner: str = "") -> list[Json]:
        """Return copies of the objects of a namespace that match the selector and have an owner with this uid."""
        parsed = labels.parse(selector)
        matches = parsed.matches
        exact = [(each.key, each.exact_value) for each in parsed.requirements]
        parts = [f'"{key}":"{value}"'.encode() for key, value in exact if value is not None]
        found = [
            obj
            for place, informer in self.informers.items()
            if not place or not namespace or place == namespace
            for obj in self._fenced(place, informer, parts, owner=owner, namespace=namespace)
        ]
        return [
            obj
            for obj in found
            if (not namespace or namespace_of(obj) == namespace)
            and matches(labels_of(obj))
            and (not owner or owner in owner_uids(obj))
        ]

    def _fenced(
        self, place: str, informer: SharedIndexInformer, parts: Sequence[bytes], *, owner: str, namespace: str
    ) -> Iterable[Json]:
        """Return candidates: the objects of the owner or of the namespace, with the text of exact label values."""
        indexer, fence = informer.indexer, self._fences[place]
        assert isinstance(indexer, CompactIndexer)
        index = OWNER_INDEX if owner else NAMESPACE_INDEX if namespace else ""
        cached = indexer.containing(parts, index=index, value=owner or namespace)
        if not len(fence):
            return cached
        states = {meta_namespace_key(obj): obj for obj in cached}
        for key in fence.pending():
            state = fence.visible(key, indexer.get_by_key(key))
            if state is None:
                states.pop(key, None)
            else:
                states[key] = copy_json(state)
        return states.values()

    def written(self, obj: Json) -> None:
        """Let readers see the result of a write."""
        if fence := self._fences.get(self._place(namespace_of(obj))):
            fence.written(obj if self._managed_fields else strip_managed_fields(obj))

    def deleted(self, obj: Json) -> None:
        """Let readers see that the object, by its uid, is gone."""
        if fence := self._fences.get(self._place(namespace_of(obj))):
            fence.deleted(obj)

    def is_applied(self, key: str, state: Json, body: bytes, manager: str) -> bool:
        """Whether the same body was applied to the object, and nobody has changed its state since."""
        applied = self._applied.get(key)
        return (
            applied is not None
            and applied.body == _digest(manager.encode() + body)
            and applied.result == _content(state)
        )

    def applied(self, body: bytes, manager: str, result: Json) -> None:
        """Remember the result of an apply."""
        self._applied[meta_namespace_key(result)] = _Applied(_digest(manager.encode() + body), _content(result))

    def _place(self, namespace: str) -> str:
        return "" if "" in self.informers else namespace

    def _forget(self, obj: Deleted) -> None:
        state = last_known_state(obj)
        if state is not None:
            self._applied.pop(meta_namespace_key(state), None)


@dataclass(frozen=True, slots=True)
class _Applied:
    body: bytes
    result: bytes


def _position(informer: SharedIndexInformer) -> Callable[[], str]:
    return lambda: informer.cached_resource_version


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _content(obj: Json) -> bytes:
    """Return a digest of the object without its status and without metadata that every write changes."""
    kept = {key: value for key, value in metadata(obj).items() if key not in ("resourceVersion", "managedFields")}
    content = {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept}
    return _digest(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def owner_uids(obj: Json) -> tuple[str, ...]:
    return tuple(str(reference.get("uid") or "") for reference in owner_references(obj))


def strip_managed_fields(obj: Json) -> Json:
    """Return the object without managedFields, which no reader of a cache needs."""
    meta = obj.get("metadata") or {}
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


@dataclass(frozen=True, slots=True)
class _ConsistentListWatch:
    """Source whose first list is consistent: a list at "0" may be older than writes before a restart."""

    source: ListerWatcher

    async def list(self, options: ListOptions) -> Json:
        consistent = replace(options, resource_version=None) if options.resource_version == "0" else options
        return await self.source.list(consistent)

    async def watch(self, options: ListOptions) -> OpenWatch:
        return await self.source.watch(options)


class GuardedTransport:
    """Calls `check` before each write."""

    def __init__(self, transport: Transport, check: Callable[[], None]) -> None:
        self._transport = transport
        self._check = check

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READS:
            self._check()
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()


class Cluster:
    """Client, caches and kinds of one cluster. `name` is empty for a manager with one cluster.

    Cached objects have no managedFields, unless `managed_fields` is set.

    >>> from pilothouse.operator import Cluster
    >>> cluster = Cluster(client)
    >>> (await cluster.mapping("apps/v1 Deployment")).resource.resource
    'deployments'
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str = "",
        namespaces: Sequence[str] = (),
        resync_period: float = 0.0,
        managed_fields: bool = False,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self.name = name
        self.client = client
        self.mapper = RESTMapper(DiscoveryClient(client))
        self._namespaces = tuple(namespaces)
        self._resync_period = resync_period
        self._managed_fields = managed_fields
        self._clock = clock
        self._caches: dict[GroupVersionKind, KindCache] = {}
        self._mappings: dict[GroupVersionKind, RESTMapping] = {}
        self._gvks: dict[tuple[Any, Any], GroupVersionKind] = {}  # of served kinds, by (apiVersion, kind)
        self._running: list[asyncio.Task[None]] = []
        self.missing: set[GroupVersionKind] = set()
        """Declared kinds that the server does not serve yet."""

    def __str__(self) -> str:
        return f"cluster {self.name}" if self.name else "the cluster"

    async def mapping(self, kind: AnyKind) -> RESTMapping:
        """Return resource and scope of a kind. Raises NoMatch for a kind that the server does not serve."""
        gvk = gvk_of(kind)
        if gvk not in self._mappings:
            self._mappings[gvk] = await self.mapper.mapping(gvk.group_kind, gvk.version)
        return self._mappings[gvk]

    async def wait_until_served(self, kind: AnyKind) -> RESTMapping:
        """Return the mapping of the kind as soon as the server serves the kind. Logs the wait."""
        gvk, delay, logged = gvk_of(kind), RETRY.delays(), ""
        while True:
            try:
                mapping = await self.mapping(kind)
                self.missing.discard(gvk)
                return mapping
            except NoMatch:
                self.missing.add(gvk)
                reason = (
                    "the server does not serve this kind; "
                    "install its CustomResourceDefinition, or use Manager(install_crds=True)"
                )
            except (StatusError, ConnectionFailed, InvalidResponse) as error:
                reason = str(error)
            if reason != logged:
                logger.warning("waiting for %s %s in %s: %s", gvk.api_version, gvk.kind, self, reason)
                logged = reason
            await self._clock.sleep(delay())

    async def cache(self, kind: AnyKind) -> KindCache:
        """Return the cache of the kind; start its informers on the first call. Waits until the kind is served."""
        mapping = await self.wait_until_served(kind)
        if mapping.kind not in self._caches:
            places = self._namespaces if mapping.namespaced and self._namespaces else ("",)
            informers = {place: self._informer(mapping, place) for place in places}
            self._caches[mapping.kind] = KindCache(mapping, informers, self._clock, managed_fields=self._managed_fields)
            for informer in informers.values():
                task = asyncio.ensure_future(informer.run())
                task.add_done_callback(_log_failure)
                self._running.append(task)
        return self._caches[mapping.kind]

    def cached(self, kind: AnyKind) -> KindCache:
        """Return the cache of a declared kind. Raises LookupError for other kinds."""
        gvk = gvk_of(kind)
        if gvk not in self._caches:
            raise LookupError(f"{gvk.api_version} {gvk.kind} is not cached: declare it in owns, watches or reads")
        return self._caches[gvk]

    def caches(self) -> Iterable[KindCache]:
        """Return the caches of all kinds."""
        return self._caches.values()

    async def close(self) -> None:
        """Stop all informers."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()

    def _informer(self, mapping: RESTMapping, namespace: str) -> SharedIndexInformer:
        source = _ConsistentListWatch(self.client.for_resource(mapping.resource, namespace=namespace))
        informer = SharedIndexInformer(
            source,
            name=str(mapping.resource.group_resource),
            resync_period=self._resync_period,
            indexers={OWNER_INDEX: owner_uids},
            compact=True,
            clock=self._clock,
        )
        if not self._managed_fields:
            informer.set_transform(strip_managed_fields)
        return informer

    async def resource(self, kind: AnyKind, namespace: str = "") -> ResourceClient:
        """Return a client of the kind's resource. Raises NoMatch."""
        mapping = await self.mapping(kind)
        return self.client.for_resource(mapping.resource, namespace=namespace if mapping.namespaced else "")

    async def apply(self, obj: Json, *, owner: Json | None, field_manager: str, force: bool = True) -> Json:
        """Apply an object with a reference to its owner; return the stored object.

        No request is sent if the same object was applied before and the cached object has not changed since. Raises
        ValueError for an owner that cannot own the object, AlreadyOwned, StatusError.
        """
        gvk = self._gvk(obj)
        mapping = await self.mapping(gvk)
        body = _with_owner(obj, owner, mapping) if owner is not None else obj
        cache = self._caches.get(mapping.kind)
        key, encoded = meta_namespace_key(body), orjson.dumps(body)
        if cache is not None and (state := cache.get(key)) is not None:
            if cache.is_applied(key, state, encoded, field_manager):
                return state
            _refuse_other_controller(state, owner)
        resource = self.client.for_resource(mapping.resource, namespace=namespace_of(body))
        result = await resource.apply(body, field_manager=field_manager, force=force)
        if cache is not None:
            cache.written(result)
            cache.applied(encoded, field_manager, strip_managed_fields(result))
        return result

    async def create(self, obj: Json) -> Json:
        """Create an object; return the stored object. Raises AlreadyExists, StatusError."""
        resource = await self.resource(self._gvk(obj), namespace_of(obj))
        return self._seen(await resource.create(obj))

    async def update(self, obj: Json, *, subresource: str = "") -> Json:
        """Replace an object, or a subresource; return the stored object. Raises Conflict, StatusError."""
        resource = await self.resource(self._gvk(obj), namespace_of(obj))
        return self._seen(await resource.update(obj, subresource=subresource))

    async def patch(self, obj: Json, patch: Json, *, subresource: str = "") -> Json:
        """Send a merge patch; return the stored object. Raises StatusError."""
        resource = await self.resource(self._gvk(obj), namespace_of(obj))
        result = await resource.patch(name_of(obj), patch, PatchType.MERGE, subresource=subresource)
        return self._seen(result)

    async def read(self, obj: Json) -> Json:
        """Return the newest state from the API server. Raises NotFound, StatusError."""
        resource = await self.resource(self._gvk(obj), namespace_of(obj))
        return self._seen(await resource.get(name_of(obj)))

    async def delete(self, obj: Json, options: DeleteOptions) -> None:
        """Delete an object. Raises NotFound, StatusError."""
        resource = await self.resource(self._gvk(obj), namespace_of(obj))
        result = await resource.delete(name_of(obj), options)
        if result.get("kind") != "Status" and is_kept(result):
            self._seen(result)
        elif cache := self._caches.get(self._gvk(obj)):
            known = cache.get(meta_namespace_key(obj))
            if known is not None:
                cache.deleted(known)

    def gone(self, obj: Json) -> None:
        """Record that the object no longer exists."""
        if cache := self._caches.get(self._gvk(obj)):
            cache.deleted(obj)

    def _gvk(self, obj: Json) -> GroupVersionKind:
        names = obj.get("apiVersion"), obj.get("kind")
        if (known := self._gvks.get(names)) is not None:
            return known
        if not names[0] or not names[1]:
            raise ValueError(f"the object {name_of(obj)!r} needs apiVersion and kind")
        known = gvk_of(f"{names[0]} {names[1]}")
        if known in self._mappings:
            self._gvks[names] = known
        return known

    def _seen(self, obj: Json) -> Json:
        if cache := self._caches.get(self._gvk(obj)):
            cache.written(obj)
        return obj


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log_failed_attempt(logger, error, "a cache failed, and is no longer updated", final=True)


def is_kept(obj: Json) -> bool:
    """Whether an object that is being deleted still exists: finalizers or a grace period keep it."""
    meta = obj.get("metadata") or {}
    return bool(meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"))


def _with_owner(obj: Json, owner: Json, mapping: RESTMapping) -> Json:
    """Return the object in the owner's namespace, with the owner as its controller. Raises ValueError."""
    meta = {
        key: value for key, value in metadata(obj).items() if key not in ("resourceVersion", "managedFields", "uid")
    }
    owned_by = f"{owner['kind']} {meta_namespace_key(owner)}"
    name = f"{obj['kind']} {name_of(obj)}"
    if mapping.namespaced:
        meta.setdefault("namespace", namespace_of(owner))
        if not meta["namespace"]:
            raise ValueError(f"{name} needs a namespace: its owner {owned_by} has none")
        if namespace_of(owner) and meta["namespace"] != namespace_of(owner):
            raise ValueError(
                f"{name} in namespace {meta['namespace']} cannot be owned by {owned_by}: apply it without owner"
            )
    elif namespace_of(owner):
        raise ValueError(f"{name} is cluster-scoped and cannot be owned by {owned_by}: apply it without owner")
    others = [other for other in meta.get("ownerReferences") or () if other.get("uid") != uid_of(owner)]
    return {**obj, "metadata": {**meta, "ownerReferences": [*others, controller_ref(owner)]}}


def _refuse_other_controller(state: Json, owner: Json | None) -> None:
    controller = controller_of(state)
    if controller is not None and owner is not None and controller.get("uid") != uid_of(owner):
        raise AlreadyOwned(
            f"{state['kind']} {meta_namespace_key(state)} is controlled by {controller['kind']} {controller['name']}"
        )
