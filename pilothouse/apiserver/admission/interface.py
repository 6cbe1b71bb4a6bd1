"""The contract of an admission plugin: it may change objects (admit), refuse them (validate), or both."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field
from enum import Enum
from typing import Protocol, runtime_checkable

from pilothouse.apiserver.admission.equivalents import EquivalentResources
from pilothouse.apiserver.admission.reinvocation import ReinvocationContext
from pilothouse.apiserver.audit.annotations import METADATA
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.beside_the_loop import Weight
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


class Operation(Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Annotate(Protocol):
    """Tells the audit log something; `level` is the audit level from which on it is logged."""

    def __call__(self, key: str, value: str, level: str = METADATA) -> None: ...


def _unheard(key: str, value: str, level: str = METADATA) -> None:
    """Where nobody keeps a log."""


NO_EQUIVALENTS = EquivalentResources()


@dataclass(frozen=True, slots=True)
class Attributes:
    """One write as admission sees it. `obj` is None for deletes, `old` for creates.

    `kind` and `resource` are what the request names; `obj` and `old` have the stored form, whichever version that is.
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
    annotate: Annotate = _unheard
    equivalents: EquivalentResources = NO_EQUIVALENTS
    """The other versions in which the object could have come, and how it gets there."""
    weight: Weight = field(default_factory=Weight)
    """How much the request is about; what a plugin does with its objects is carried by it."""
    reinvocation: ReinvocationContext = field(default_factory=ReinvocationContext)


class Plugin(Protocol):
    """Has at least one of the two sides, MutationPlugin and ValidationPlugin."""

    name: str

    def handles(self, operation: Operation) -> bool:
        """Always the same answer for an operation."""


@runtime_checkable
class SelectivePlugin(Plugin, Protocol):
    """One that has nothing to do for other resources, and is not asked about them."""

    resources: Collection[GroupResource]


@runtime_checkable
class MutationPlugin(Plugin, Protocol):
    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.obj` in place. Raises to refuse."""


@runtime_checkable
class ValidationPlugin(Plugin, Protocol):
    async def validate(self, attributes: Attributes) -> None:
        """Changes nothing. Raises to refuse."""
