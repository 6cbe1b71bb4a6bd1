"""Controllers in the process of an extension server: informers, work queues and leader election."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.server.hooks import HookContext, StoppedBeforeShutdown
from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.builder.cluster import Cluster, Standalone
from pilothouse.builder.command import Options
from pilothouse.builder.resource import Resource, plural_of
from pilothouse.client.cache.indexer import Lister
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.keys import ObjectName, split_meta_namespace_key
from pilothouse.client.controller import Controller, Requeue, enqueue_keys, enqueue_mapped, enqueue_owner
from pilothouse.client.events.event import NORMAL, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.leaderelection.elector import LeaderElector
from pilothouse.client.leaderelection.lease_lock import LeaseLock, new_identity
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import AsgiTransport
from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer

R = TypeVar("R", bound=Resource)
Watched: TypeAlias = "type[Resource] | GroupVersionResource"
"""A resource of this server, or any resource of the cluster."""


class Reconciler(Generic[R]):
    """Base class of controllers: `reconcile` brings the world in line with one object.

    A changed object is reconciled by its key. A reconcile that raises is retried with back-off.

    >>> from pilothouse.builder import APIServer, Reconciler, Resource
    >>> server = APIServer(group="wardle.example.com")
    >>> @server.resource(version="v1alpha1")
    ... class Flunder(Resource):
    ...     pass
    >>> @server.controller(Flunder)
    ... class FlunderController(Reconciler[Flunder]):
    ...     async def reconcile(self, key):
    ...         flunder = self.get(key)
    """

    resource: ClassVar[type[Resource]]
    owns: ClassVar[tuple[Watched, ...]] = ()
    watches: ClassVar[tuple[tuple[Watched, Callable[[Json], Iterable[str]]], ...]] = ()
    workers: ClassVar[int] = 1

    def __init__(
        self, client: Client, factory: SharedInformerFactory, recorder: EventRecorder, plurals: Plurals
    ) -> None:
        self.client = client
        """Client of the whole cluster. Requests to this server's group stay in the process."""
        self._factory = factory
        self._recorder = recorder
        self._plurals = plurals

    async def reconcile(self, key: ObjectName) -> Requeue | None:
        """Reconcile one object; subclasses override this method. Return a Requeue to run again without an error."""
        raise NotImplementedError

    def get(self, key: ObjectName) -> R | None:
        """Return a copy of the cached object; None if the object does not exist."""
        try:
            cached = self.lister(self.resource).namespace(key.namespace).get(key.name)
        except NotFound:
            return None
        return self.resource.from_json(cached)  # type: ignore[return-value]  # the class that R stands for

    def lister(self, resource: Watched) -> Lister:
        """Return the lister of a resource that this controller reconciles, owns or watches."""
        return self._factory.lister(self._plurals(resource))

    def record(self, obj: R | Json, reason: str, message: str, type_: str = NORMAL) -> None:
        """Record an event about the object."""
        self._recorder.event(obj if isinstance(obj, dict) else obj.to_json(), type_, reason, message)

    async def update_status(self, obj: R, change: Callable[[R], object] | None = None) -> R:
        """Write the object's status, and return the written object.

        After a conflict, the newest object is read and `change` is applied to it (without `change`, the status of
        `obj` is
        set), and the write is retried. A write that would change nothing is skipped. Raises StatusError.
        """
        objects = self.client.for_resource(self._plurals(type(obj)), namespace=obj.namespace)
        current = await objects.get(obj.name)
        while True:
            newest = type(obj).from_json(current)
            if change is None:
                newest.status = obj.status
            else:
                change(newest)
            status = newest.to_json().get("status")
            if status == current.get("status"):
                return newest
            try:
                written = await objects.update({**current, "status": status}, subresource="status")
            except Conflict:
                current = await objects.get(obj.name)
                continue
            return type(obj).from_json(written)


Plurals: TypeAlias = Callable[[Watched], GroupVersionResource]


class ControllerRunner(StoppedBeforeShutdown):
    """Runs the controllers of a server, in one replica at a time, until the server stops."""

    def __init__(self, server: APIServer, options: Options, cluster: Cluster | Standalone, own: Handler) -> None:
        self._server = server
        self._options = options
        self._place = cluster.place
        self._client = _client(server, cluster.client, own)

    async def start(self, context: HookContext) -> None:
        self._running = context.spawn(self._run(), name="controllers")

    async def _run(self) -> None:
        if not self._options.extension.leader_elect:
            await self._lead()
            return
        place = self._place
        lock = LeaseLock(self._client, namespace=place.namespace, name=place.name, identity=new_identity())
        while True:
            await LeaderElector(lock).run(self._lead)

    async def _lead(self) -> None:
        recorder = EventRecorder(self._client, EventSource(self._server.name))
        async with SharedInformerFactory(self._client) as factory, asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            controllers = [self._controller(cls, factory, recorder) for cls in self._server.controllers.values()]
            factory.start()
            for controller in controllers:
                tasks.create_task(controller.run())

    def _controller(
        self, cls: type[Reconciler[Any]], factory: SharedInformerFactory, recorder: EventRecorder
    ) -> Controller[str]:
        reconciler = cls(self._client, factory, recorder, self._resource)

        async def reconcile(key: str) -> Requeue | None:
            return await reconciler.reconcile(split_meta_namespace_key(key))

        watched = [cls.resource, *cls.owns, *(resource for resource, _ in cls.watches)]
        informers = [factory.for_resource(self._resource(resource)) for resource in watched]
        controller = Controller(cls.__name__, reconcile, caches=tuple(informers), workers=cls.workers)
        handlers = [
            enqueue_keys(controller.queue),
            *(enqueue_owner(controller.queue, cls.resource.kind) for _ in cls.owns),
            *(enqueue_mapped(controller.queue, keys_for) for _, keys_for in cls.watches),
        ]
        for informer, handler in zip(informers, handlers, strict=True):
            informer.add_event_handler(handler)
        return controller

    def _resource(self, watched: Watched) -> GroupVersionResource:
        if isinstance(watched, GroupVersionResource):
            return watched
        group, _, version = watched.api_version.rpartition("/")
        plural = next((kind.plural for kind in self._server.kinds if kind.options.kind == watched.kind), "")
        return GroupVersionResource(group, version, plural or plural_of(watched.kind))


def _client(server: APIServer, cluster: Client | None, own: Handler) -> Client:
    """Return a client that serves this server's group in the process, and sends other requests to the cluster."""
    here = AsgiTransport(AsgiApp(own))
    agent = f"{server.name}-controllers"
    if cluster is None:
        return Client(here, user_agent=agent)
    return Client(OwnGroupTransport(f"/apis/{server.group}", here, cluster.transport), user_agent=agent)


class OwnGroupTransport:
    """Sends requests below `root` to `own`, and other requests to `other`."""

    def __init__(self, root: str, own: Transport, other: Transport) -> None:
        self._root = root
        self._own = own
        self._other = other

    async def send(self, request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0]
        is_own = path == self._root or path.startswith(f"{self._root}/")
        return await (self._own if is_own else self._other).send(request)

    async def close(self) -> None:
        """Do nothing: the transports belong to the caller."""
