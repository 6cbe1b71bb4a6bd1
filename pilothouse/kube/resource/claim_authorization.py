"""Authorization of writes to the status of resource claims.

    allocation, reservedFor   → resourceclaims/binding, in all namespaces
    devices of a driver       → resourceclaims/driver, named after the driver; the verb has the prefix associated-
node: on
                                the claim's own node, otherwise arbitrary-node:
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

from pilothouse.apiserver.authn.service_accounts import NODE_NAME, service_account_name
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision, forbidden
from pilothouse.apiserver.registry.operations import RequestContext, Updated, UpdateRequest
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Hooks, Objections
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.resource.allocations import device_id
from pilothouse.kube.resource.resource_claims import RESOURCE_CLAIMS, ResourceClaimStatusStrategy
from pilothouse.machinery import field
from pilothouse.machinery.objects import Json, items, name_of, namespace_of, part, text
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.names import is_dns1123_subdomain


class ResourceClaimStatusStore(StatusStore):
    """Authorizes each change before the strategy validates it."""

    def __init__(self, registry: RegistryStore, authorizer: Authorizer) -> None:
        super().__init__(registry, ResourceClaimStatusStrategy())
        self._authorizer = authorizer

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        view = self._view.with_hooks(_AuthorizedChanges(self._view.hooks, ctx, self._authorizer))
        return await view.update(ctx, name, replace(update, force_allow_create=False))


class _AuthorizedChanges(Hooks):
    """Hooks of one request: reject unauthorized changes, then call the hooks of `others`."""

    def __init__(self, others: Hooks, ctx: RequestContext, authorizer: Authorizer) -> None:
        self._others = others
        self._ctx = ctx
        self._authorizer = authorizer

    @asynccontextmanager
    async def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AsyncIterator[Objections]:
        async with self._others.around_update(obj, old, dry_run=dry_run) as objections:
            granular = enabled("DRAResourceClaimGranularStatusAuthorization")
            refusals = [error async for error in self._refusals(self._ctx, obj, old)] if granular else []
            yield [*(objections or ()), *refusals] or None

    async def _refusals(self, ctx: RequestContext, obj: Json, old: Json) -> AsyncIterator[field.FieldError]:
        new_status, old_status = part(obj, "status"), part(old, "status")
        kind = RESOURCE_CLAIMS.kind
        asked = Attributes(
            ctx.user,
            ctx.verb,
            is_resource=True,
            group=kind.group,
            version=kind.version,
            resource=RESOURCE_CLAIMS.names.plural,
            subresource="status",
            namespace=ctx.namespace,
            name=name_of(obj),
        )
        if not _same(new_status, old_status, "allocation", "reservedFor"):
            binding = replace(asked, subresource="binding", namespace="", name="")
            if reason := await self._refusal([binding]):
                what = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding"'
                yield field.forbidden(
                    field.root("status", "allocation"), f'{what}, verb="{ctx.verb}" permission: {reason}'
                )
        if new_status.get("allocation") is not None and enabled("DRAResourceClaimDeviceStatus"):
            verbs = list(_driver_verbs(ctx, new_status))
            for driver in sorted(_changed_drivers(new_status, old_status)):
                ways = [replace(asked, verb=verb, subresource="driver", name=driver) for verb in verbs]
                if reason := await self._refusal(ways):
                    what = 'changing status.devices requires resource="resourceclaims/driver"'
                    told = f'{what}, verb="[{" ".join(verbs)}]" permission: {reason}'
                    yield field.forbidden(field.root("status", "devices"), told)

    async def _refusal(self, ways: Iterable[Attributes]) -> str:
        """Return an empty string if one way is allowed, otherwise the reason of the first."""
        first = ""
        for attributes in ways:
            answer = await self._authorizer.authorize(attributes)
            if answer.decision is Decision.ALLOW:
                return ""
            first = first or str(forbidden(attributes, answer.reason).message)
        return first


def _same(new: Json, old: Json, *fields: str) -> bool:
    return all(semantically_equal(new.get(item), old.get(item)) for item in fields)


def _changed_drivers(new: Json, old: Json) -> set[str]:
    """Return the drivers with added, changed or removed devices."""
    before = {device_id(device): device for device in items(old, "devices")}
    changed: set[str] = set()
    for device in items(new, "devices"):
        if not semantically_equal(before.pop(device_id(device), None), device):
            changed.add(text(device, "driver"))
    return changed | {device.driver for device in before}


def _driver_verbs(ctx: RequestContext, status: Json) -> Iterable[str]:
    # The node of an allocation that is bound to exactly one node.
    node, terms = "", items(status, "allocation", "nodeSelector", "nodeSelectorTerms")
    if len(terms) == 1 and not items(terms[0], "matchExpressions") and len(items(terms[0], "matchFields")) == 1:
        (match,) = items(terms[0], "matchFields")
        one_name = text(match, "key") == "metadata.name" and text(match, "operator") == "In"
        values = items(match, "values")
        node = values[0] if one_name and len(values) == 1 else ""
    if node and _runs_on(ctx.user, node):
        yield f"associated-node:{ctx.verb}"
    yield f"arbitrary-node:{ctx.verb}"


def _runs_on(user: User, node: str) -> bool:
    is_account = service_account_name(user.name) is not None
    return is_account and user.extra.get(NODE_NAME, ()) == (node,) and not is_dns1123_subdomain(node)


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
        return _checked(obj, self._labels, _first(field.root("spec", "devices", "requests"), asking))


class AdminAccessStatus(Hooks):
    """Checks the first allocation with admin access. Allocations are immutable."""

    def __init__(self, labels: NamespaceLabels) -> None:
        self._labels = labels

    def around_update(self, obj: Json, old: Json, *, dry_run: bool) -> AbstractAsyncContextManager[Objections]:
        path = _granted(obj) if _granted(old) is None else None
        return _checked(obj, self._labels, path)


def _granted(obj: Json) -> field.Path | None:
    results = items(obj, "status", "allocation", "devices", "results")
    granted = (i for i, each in enumerate(results) if each.get("adminAccess"))
    return _first(field.root("status", "allocation", "devices", "results"), granted)


def _first(path: field.Path, positions: Iterator[int]) -> field.Path | None:
    position = next(positions, None)
    return None if position is None else path.index(position).child("adminAccess")


@asynccontextmanager
async def _checked(obj: Json, labels: NamespaceLabels, path: field.Path | None) -> AsyncIterator[Objections]:
    refusal = None if path is None else await _refusal(namespace_of(obj), labels, path)
    yield [refusal] if refusal else None


async def _refusal(namespace: str, labels: NamespaceLabels, path: field.Path) -> field.FieldError | None:
    result = await labels(namespace)
    if result is None:
        reason = f'could not retrieve namespace to verify admin access: namespaces "{namespace}" not found'
        return field.internal(path, reason)
    if result.get(ADMIN_LABEL) != "true":
        reason = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        return field.forbidden(path, reason)
    return None
