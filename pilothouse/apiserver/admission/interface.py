"""The contract of admission plugins: change objects (admit), reject writes (validate), or both.

After a webhook or policy changes the object, the mutating plugins run a second round, never a third
(`ReinvocationContext`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field
from enum import Enum
from math import inf
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from pilothouse.apiserver.audit.annotations import METADATA
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.apply.atoms import DEDUCED, Atom
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, metadata

Conversion: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Convert a stored object without changing the argument. Raises StatusError."""


@dataclass(frozen=True, slots=True)
class ServedForm:
    """A resource or subresource as served in a group version."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    read: Callable[[Any], Json]
    """Decode a JSON value as an object of the kind: drop unknown fields, apply defaults. Raises DecodeError."""
    unknown_fields: Callable[[Any], Sequence[str]] = lambda value: ()
    """Return the errors of strict decoding. Raises DecodeError."""
    atom: Callable[[], Atom] = lambda: DEDUCED
    """Return the merge schema of the kind."""
    printed: Callable[[Json], Json] = lambda obj: obj
    """Drop empty fields with omitempty semantics."""
    from_stored: Conversion | None = None
    to_stored: Conversion | None = None

    async def served(self, obj: Json) -> Json:
        """Return the object in this form; treat the result as read-only, as `obj` itself may be returned."""
        return self.printed(obj if self.from_stored is None else await self.from_stored(obj))

    async def stored(self, obj: Json) -> Json:
        return obj if self.to_stored is None else await self.to_stored(obj)


class EquivalentResources:
    """Registry of equivalent resources: resources that share stored objects."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, str], list[ServedForm]] = defaultdict(list)
        self._keys: dict[GroupVersionResource, str] = {}

    def register(self, storage: str, subresource: str, form: ServedForm) -> None:
        """Register a form; `storage` identifies the stored objects."""
        self._keys[form.resource] = storage
        self._forms[storage, subresource].append(form)

    def forms(self, resource: GroupVersionResource, subresource: str) -> Sequence[ServedForm]:
        """Return all equivalent forms in registration order, including the form of the resource itself."""
        return self._forms.get((self._keys.get(resource, ""), subresource), ())

    def form(self, resource: GroupVersionResource, subresource: str) -> ServedForm | None:
        forms = self.forms(resource, subresource)
        return next((form for form in forms if form.resource == resource), None)


T = TypeVar("T")


class ReinvocationContext:
    """Plugin state shared by both rounds of a request."""

    __slots__ = ("_values", "is_reinvoke", "should_reinvoke")

    def __init__(self) -> None:
        self.is_reinvoke = False
        """Whether the second round is running."""
        self.should_reinvoke = False
        """Whether a plugin requested a second round."""
        self._values: dict[str, Any] | None = None

    def value(self, plugin: str, make: Callable[[], T]) -> T:
        """Return the plugin's state, created on first use and kept between the rounds."""
        if self._values is None:
            self._values = {}
        if plugin not in self._values:
            self._values[plugin] = make()
        value: T = self._values[plugin]
        return value


class Operation(Enum):
    """Operation of a write.

    >>> from pilothouse.apiserver import Operation
    >>> [operation.value for operation in Operation]
    ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']
    """

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"

    __hash__ = object.__hash__  # members are singletons; the default hashes their names, in Python


class Annotate(Protocol):
    """Add an audit annotation; `level` is the minimum audit level for logging the annotation."""

    def __call__(self, key: str, value: str, level: str = METADATA) -> None: ...


def no_audit(key: str, value: str, level: str = METADATA) -> None:
    """Discard the annotation, for requests without an audit event."""


NO_EQUIVALENTS = EquivalentResources()


@dataclass(slots=True, eq=False)
class Attributes:
    """The attributes of a write for admission. `obj` is None for deletes, `old` for creates.

    Treat as immutable; not frozen because that triples construction cost, and every write has two instances.

    `kind` and `resource` are those of the request; `obj` and `old` are in the storage version.

    >>> from pilothouse.apiserver import AdmissionAttributes, GroupVersion, Operation, User
    >>> v1 = GroupVersion("wardle.example.com", "v1")
    >>> kind, resource = v1.kind("Flunder"), v1.resource("flunders")
    >>> AdmissionAttributes(Operation.DELETE, kind, resource, "", "default", "a", User("jane")).dry_run
    False
    """

    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    namespace: str
    name: str
    user: User
    obj: Json | None = None
    old: Json | None = None
    options: Json | None = None
    dry_run: bool = False
    warn: Callable[[str], None] = lambda _: None
    annotate: Annotate = no_audit
    equivalents: EquivalentResources = NO_EQUIVALENTS
    """The other served versions of the object, with their conversions."""
    weight: Weight = field(default_factory=Weight)
    """Size of the request; large objects are processed off the event loop."""
    deadline: float = inf
    """Deadline of the request on the monotonic clock; bounds all outgoing calls."""
    reinvocation: ReinvocationContext = field(default_factory=ReinvocationContext)


AdmissionAttributes: TypeAlias = Attributes
"""Alias for modules that also import the authorization attributes."""


class Plugin(Protocol):
    """An admission plugin; implements MutationPlugin, ValidationPlugin, or both."""

    name: str

    def handles(self, operation: Operation) -> bool:
        """Return whether the plugin handles the operation; the result must be constant."""


class Handler:
    """Base of plugins that handle a fixed set of operations."""

    operations: ClassVar[Collection[Operation]]

    def handles(self, operation: Operation) -> bool:
        return operation in self.operations


@runtime_checkable
class SelectivePlugin(Plugin, Protocol):
    """A plugin for certain resources only; the chain skips the plugin for all other resources."""

    resources: Collection[GroupResource]


@runtime_checkable
class MutationPlugin(Plugin, Protocol):
    """A plugin that may change objects.

    >>> from pilothouse.apiserver import AdmissionAttributes, AdmissionChain, MutationPlugin, Operation
    >>> class PaintItRed:
    ...     name = "PaintItRed"
    ...     def handles(self, operation: Operation) -> bool:
    ...         return operation is Operation.CREATE
    ...     async def admit(self, attributes: AdmissionAttributes) -> None:
    ...         attributes.obj["spec"]["colour"] = "red"
    >>> isinstance(PaintItRed(), MutationPlugin)
    True
    """

    async def admit(self, attributes: Attributes) -> None:
        """Change `attributes.obj` in place, or raise to reject."""


@runtime_checkable
class ValidationPlugin(Plugin, Protocol):
    """A plugin that may reject writes.

    >>> from pilothouse.apiserver import AdmissionAttributes, AdmissionChain, Operation, ValidationPlugin
    >>> from pilothouse.errors import Forbidden
    >>> class NobodyDeletes:
    ...     name = "NobodyDeletes"
    ...     def handles(self, operation: Operation) -> bool:
    ...         return operation is Operation.DELETE
    ...     async def validate(self, attributes: AdmissionAttributes) -> None:
    ...         raise Forbidden("nothing is deleted here")
    >>> isinstance(NobodyDeletes(), ValidationPlugin)
    True
    """

    async def validate(self, attributes: Attributes) -> None:
        """Raise to reject; must not change the object."""


NOT_YET_READY = "not yet ready to handle request"


def refused(attributes: Attributes, reason: str) -> Forbidden:
    """Build Forbidden; objects with a generated name are named by generateName."""
    meta = metadata(attributes.obj) if attributes.obj is not None else {}
    name = attributes.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return Forbidden.of(attributes.resource.group_resource, name, reason)
