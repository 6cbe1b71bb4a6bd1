"""Admin access to devices requires a label on the namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from pilothouse.apiserver.registry.hooks import Hooks, Objections
from pilothouse.machinery.field import FieldError, Path, forbidden, internal, root
from pilothouse.machinery.objects import Json, items, namespace_of

ADMIN_LABEL = "resource.kubernetes.io/admin-access"

NamespaceLabels: TypeAlias = Callable[[str], Awaitable[dict[str, str] | None]]
"""Returns the labels of a namespace, or None if the namespace does not exist."""


class AdminAccess(Hooks):
    """Checks requests on create. Requests are immutable."""

    def __init__(self, labels: NamespaceLabels, spec: tuple[str, ...]) -> None:
        self._labels = labels
        self._spec = spec
        """Path of the claim's spec in the object."""

    def around_create(self, obj: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        requests = items(obj, *self._spec, "devices", "requests")
        asking = (i for i, each in enumerate(requests) if (each.get("exactly") or {}).get("adminAccess"))
        return _checked(obj, self._labels, _first(root("spec", "devices", "requests"), asking))


class AdminAccessStatus(Hooks):
    """Checks the first allocation with admin access. Allocations are immutable."""

    def __init__(self, labels: NamespaceLabels) -> None:
        self._labels = labels

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        path = _granted(obj) if _granted(old) is None else None
        return _checked(obj, self._labels, path)


def _granted(obj: Json) -> Path | None:
    results = items(obj, "status", "allocation", "devices", "results")
    granted = (i for i, each in enumerate(results) if each.get("adminAccess"))
    return _first(root("status", "allocation", "devices", "results"), granted)


def _first(path: Path, positions: Iterator[int]) -> Path | None:
    position = next(positions, None)
    return None if position is None else path.index(position).child("adminAccess")


@asynccontextmanager
async def _checked(obj: Json, labels: NamespaceLabels, path: Path | None) -> AsyncIterator[Objections]:
    refusal = None if path is None else await _refusal(namespace_of(obj), labels, path)
    yield [refusal] if refusal else None


async def _refusal(namespace: str, labels: NamespaceLabels, path: Path) -> FieldError | None:
    result = await labels(namespace)
    if result is None:
        reason = f'could not retrieve namespace to verify admin access: namespaces "{namespace}" not found'
        return internal(path, reason)
    if result.get(ADMIN_LABEL) != "true":
        reason = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        return forbidden(path, reason)
    return None
