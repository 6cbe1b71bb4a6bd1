"""The contract of admission plugins: change objects (admit), reject writes (validate), or both.

After a webhook or policy changes the object, the mutating plugins run a second round, never a third
(`ReinvocationContext`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field
from enum import Enum
from math import inf
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from pilothouse.apiserver.admission.equivalents import EquivalentResources
from pilothouse.apiserver.audit.annotations import METADATA
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

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


class Annotate(Protocol):
    """Add an audit annotation; `level` is the minimum audit level for logging the annotation."""

    def __call__(self, key: str, value: str, level: str = METADATA) -> None: ...


def unheard(key: str, value: str, level: str = METADATA) -> None:
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
    annotate: Annotate = unheard
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
