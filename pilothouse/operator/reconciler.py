"""Reconciler: the base class of an operator's logic, with reads from the cache and writes to the API server.

A subclass declares what it watches, and brings the world in line with one object in `reconcile`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast, get_args, get_origin, overload

from pilothouse.client.cache.keys import ObjectName
from pilothouse.client.events.event import NORMAL
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, uid_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.operator.kinds import AnyKind, copy_json, gvk_of, reader_of, stored_json, to_json
from pilothouse.operator.predicates import Passes
from pilothouse.operator.types import BuiltinKind

if TYPE_CHECKING:
    from pilothouse.client.events.recorder import EventRecorder
    from pilothouse.client.rest.client import Client
    from pilothouse.client.workqueue.rate_limiting import RateLimiter
    from pilothouse.operator.cluster import Cluster

T = TypeVar("T")
K = TypeVar("K")
F = TypeVar("F", bound="Callable[..., Any]")

Keys: TypeAlias = "Iterable[str | ObjectName]"
MapFunction: TypeAlias = "Callable[[Any], Keys | Awaitable[Keys]]"
"""Returns the keys of the objects to reconcile after a change of the given object."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a successful reconcile: run again after `requeue_after` seconds, or with `requeue` after a back-off.

    >>> from pilothouse.operator import Result
    >>> Result(requeue_after=30).requeue_after
    30
    """

    requeue_after: float = 0.0
    requeue: bool = False


class TerminalError(PilothouseError):
    """Raised by a reconcile that must not be retried before the object changes.

    >>> from pilothouse.errors import TerminalError
    >>> async def reconcile(backup):
    ...     raise TerminalError("the schedule has no meaning")
    """


@dataclass(frozen=True, slots=True)
class Watch:
    """A watched kind whose changes are mapped to objects to reconcile.

    `to` returns keys: "namespace/name", "name" or an ObjectName. Name a method of the reconciler to have its caches.

    >>> from pilothouse.operator import Watch
    >>> Watch("v1 Secret", to=lambda secret: [secret["metadata"]["labels"]["backup"]]).kind
    'v1 Secret'
    """

    kind: AnyKind
    to: MapFunction | str
    predicates: Sequence[Passes] = ()


class Reconciler(Generic[T]):
    """Base class of reconcilers of one kind. `Reconciler[Backup]` receives typed objects.

    One instance works for one cluster. A `reconcile` never runs twice at once for one object. After an exception,
    `reconcile` runs again with growing delays. A changed status is written after `reconcile`, also after an exception.

    >>> from pilothouse.operator import Condition, Reconciler, Result, kind
    >>> @kind(group="demo.example.com", version="v1", status=True)
    ... class Backup:
    ...     keep: int = 7
    >>> class BackupReconciler(Reconciler[Backup]):
    ...     owns = ["v1 ConfigMap"]
    ...
    ...     async def reconcile(self, backup: Backup) -> Result | None:
    ...         config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": backup.metadata.name}}
    ...         await self.apply(backup, {**config, "data": {"keep": str(backup.keep)}})
    ...         backup.status.conditions.set(Condition("Ready", True, "Applied"))
    """

    kind: ClassVar[AnyKind] = ""
    """The reconciled kind; default: the class in `Reconciler[…]`."""
    name: ClassVar[str] = ""
    """Name in logs and metrics; default: the kind in lower case."""
    owns: ClassVar[Sequence[AnyKind]] = ()
    """Kinds that the reconciler applies. A change of an owned object reconciles its owner."""
    watches: ClassVar[Sequence[Watch]] = ()
    """Further kinds, with a function that maps an object to the objects to reconcile."""
    reads: ClassVar[Sequence[AnyKind]] = ()
    """Kinds that `get` and `list` read; their changes reconcile nothing."""
    predicates: ClassVar[Sequence[Passes]] = ()
    """Filter of events of the reconciled kind."""
    finalizer: ClassVar[str] = ""
    """Finalizer that the framework adds before `reconcile`, and removes after `finalize`."""
    reconcile_deleting: ClassVar[bool] = False
    """Whether `reconcile` also runs for objects that are being deleted and lack the finalizer."""
    concurrency: ClassVar[int] = 1
    """Number of objects that are reconciled at once."""
    timeout: ClassVar[float | None] = None
    """Seconds until a `reconcile` or `finalize` is cancelled and counted as failed."""
    clusters: ClassVar[Sequence[str] | None] = None
    """Names of the manager's clusters to work for; None is all."""

    cluster: Cluster
    """The cluster of this instance."""
    manager_name: str
    """Name of the manager: field manager of applied objects and source of events."""
    _recorder: EventRecorder

    def rate_limiter(self) -> RateLimiter | None:
        """Return the limiter of retries; None is 5 ms × 2^failures up to 1000 s, at most 10 per second in all."""
        return None

    async def reconcile(self, obj: T, /) -> Result | None:
        """Bring the world in line with the object; subclasses override this method."""
        raise NotImplementedError(f"{type(self).__name__} has no reconcile")

    async def finalize(self, obj: T, /) -> Result | None:
        """Clean up before the object is deleted. The finalizer is removed unless a Result requests another call."""

    @property
    def client(self) -> Client:
        """Client of the cluster for requests that the cache does not serve. Its writes bypass the cache's fence."""
        return self.cluster.client

    @property
    def log(self) -> logging.Logger:
        """Logger of this reconciler. Records carry the object and the id of the running reconcile."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    @overload
    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None: ...

    @overload
    def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any: ...

    def get(self, kind: AnyKind, name: str, namespace: str = "") -> Any:
        """Return a copy of a cached object, with the reconciler's own writes; None if the object does not exist.

        Raises LookupError for a kind that is neither reconciled, owned, watched nor in `reads`.
        """
        state = self.cluster.cached(kind).get(str(ObjectName(namespace, name)))
        return None if state is None else reader_of(kind)(state)

    @overload
    def list(self, kind: type[K], namespace: str = "", *, selector: str = "", owner: Any = None) -> list[K]: ...

    @overload
    def list(self, kind: AnyKind, namespace: str = "", *, selector: str = "", owner: Any = None) -> list[Any]: ...

    def list(self, kind: AnyKind, namespace: str = "", *, selector: str = "", owner: Any = None) -> list[Any]:
        """Return copies of cached objects, with the reconciler's own writes: of a namespace, with labels, of an owner.

        Raises LookupError as `get`, InvalidSelector.
        """
        read = reader_of(kind)
        uid = uid_of(stored_json(owner)) if owner is not None else ""
        return [read(state) for state in self.cluster.cached(kind).list(namespace, selector, uid)]

    async def apply(self, owner: Any, obj: Any, *, force: bool = True) -> Any:
        """Apply an object (server-side apply) with `owner` as its controller; return the stored object.

        The owner's namespace is the default. An owner of None sets no reference. No request is sent if the same object
        was applied before and is unchanged. Raises ValueError for an owner that cannot own the object, AlreadyOwned
        for an object with another controller, Conflict without `force`, StatusError.
        """
        result = await self.cluster.apply(
            to_json(obj),
            owner=None if owner is None else stored_json(owner),
            field_manager=self.manager_name,
            force=force,
        )
        return _like(obj, result)

    async def create(self, obj: K) -> K:
        """Create an object; return the stored object. Raises AlreadyExists, StatusError."""
        return _like(obj, await self.cluster.create(to_json(obj)))

    async def update(self, obj: K) -> K:
        """Replace an object; return the stored object. Raises Conflict after a concurrent write, StatusError."""
        return _like(obj, await self.cluster.update(to_json(obj)))

    async def patch(self, obj: K, patch: Json) -> K:
        """Send a merge patch; return the stored object. Raises StatusError."""
        return _like(obj, await self.cluster.patch(to_json(obj), patch))

    async def delete(self, obj: Any, *, propagation_policy: str = "Background") -> None:
        """Delete an object, if it still has the uid that `obj` has. Raises NotFound, Conflict, StatusError."""
        json = to_json(obj)
        await self.cluster.delete(json, DeleteOptions(uid=uid_of(json), propagation_policy=propagation_policy))

    def event(self, obj: Any, reason: str, message: str, *, type: str = NORMAL) -> None:
        """Record an event about an object; `type` is "Normal" or "Warning". Returns at once."""
        self._recorder.event(stored_json(obj), type, reason, message)


def _like(obj: K, result: Json) -> K:
    """Return the result in the form of the object: typed or as JSON."""
    copied = copy_json(result)
    return cast("K", copied if isinstance(obj, dict) else reader_of(type(obj))(copied))


def kind_of_reconciler(cls: type[Reconciler[Any]]) -> AnyKind:
    """Return the reconciled kind. Raises TypeError for a reconciler without one."""
    if cls.kind:
        return cls.kind
    for base in cls.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            origin = get_origin(generic)
            if isinstance(origin, type) and issubclass(origin, Reconciler):
                argument = get_args(generic)[0]
                if isinstance(argument, type) and (hasattr(argument, "__kind__") or issubclass(argument, BuiltinKind)):
                    return argument
    raise TypeError(f'{cls.__qualname__} has no kind: derive it from Reconciler[Kind], or set kind = "v1 ConfigMap"')


def name_of_reconciler(cls: type[Reconciler[Any]]) -> str:
    return cls.name or gvk_of(kind_of_reconciler(cls)).kind.lower()


def kinds_of_reconciler(cls: type[Reconciler[Any]]) -> list[AnyKind]:
    """Return every kind that the reconciler declares, the reconciled kind first."""
    return [kind_of_reconciler(cls), *cls.owns, *(watch.kind for watch in cls.watches), *cls.reads]
