"""The contract of an admission plugin: it may change objects (admit), refuse them (validate), or both.

When a webhook or a policy changed the object, all plugins that admit see it in a second round, and never in a third
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
    """The state that the plugins share over both rounds of one request."""

    __slots__ = ("_values", "is_reinvoke", "should_reinvoke")

    def __init__(self) -> None:
        self.is_reinvoke = False
        """Whether this is the second round."""
        self.should_reinvoke = False
        """Whether a plugin asked for a second round."""
        self._values: dict[str, Any] | None = None

    def value(self, plugin: str, make: Callable[[], T]) -> T:
        """Return the state that the plugin keeps between the rounds, made when it first asks."""
        if self._values is None:
            self._values = {}
        if plugin not in self._values:
            self._values[plugin] = make()
        value: T = self._values[plugin]
        return value


class Operation(Enum):
    """What a write does.

    >>> from pilothouse.apiserver import Operation
    >>> [operation.value for operation in Operation]
    ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']
    """

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Annotate(Protocol):
    """Tells the audit log something; `level` is the audit level from which on it is logged."""

    def __call__(self, key: str, value: str, level: str = METADATA) -> None: ...


def unheard(key: str, value: str, level: str = METADATA) -> None:
    """Annotates nothing: for requests that no audit log hears of."""


NO_EQUIVALENTS = EquivalentResources()


@dataclass(slots=True, eq=False)
class Attributes:
    """One write as admission sees it. `obj` is None for deletes, `old` for creates.

    Nobody changes them; they are not frozen because that makes them three times as dear, and every write has two.

    `kind` and `resource` are what the request names; `obj` and `old` have the stored form, whichever version that is.

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
    """The other versions in which the object could have come, and how it gets there."""
    weight: Weight = field(default_factory=Weight)
    """How much the request is about; what a plugin does with its objects is carried by it."""
    deadline: float = inf
    """By when the request is to be answered, on the monotonic clock: nobody is asked for longer."""
    reinvocation: ReinvocationContext = field(default_factory=ReinvocationContext)


AdmissionAttributes: TypeAlias = Attributes
"""For those who know the attributes of authorization too."""


class Plugin(Protocol):
    """Has at least one of the two sides, MutationPlugin and ValidationPlugin."""

    name: str

    def handles(self, operation: Operation) -> bool:
        """Always the same answer for an operation."""


class Handler:
    """Base of plugins that handle a fixed set of operations."""

    operations: ClassVar[Collection[Operation]]

    def handles(self, operation: Operation) -> bool:
        return operation in self.operations


@runtime_checkable
class SelectivePlugin(Plugin, Protocol):
    """One that has nothing to do for other resources, and is not asked about them."""

    resources: Collection[GroupResource]


@runtime_checkable
class MutationPlugin(Plugin, Protocol):
    """A plugin that may change what is written.

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
        """May change `attributes.obj` in place. Raises to refuse."""


@runtime_checkable
class ValidationPlugin(Plugin, Protocol):
    """A plugin that may refuse what is written.

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
        """Changes nothing. Raises to refuse."""
