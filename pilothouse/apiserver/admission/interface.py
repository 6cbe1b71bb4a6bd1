"""The contract of an admission plugin: it may change objects (admit), refuse them (validate), or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


class Operation(Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Attributes:
    """One write as admission sees it. `obj` is None for deletes, `old` for creates."""

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


class Plugin(Protocol):
    name: str

    def handles(self, operation: Operation) -> bool: ...

    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.obj` in place. Raises to refuse."""

    async def validate(self, attributes: Attributes) -> None:
        """Changes nothing. Raises to refuse."""
