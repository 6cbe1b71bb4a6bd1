"""Writers of policies and bindings need read access to the parameters.

Messages of policies can expose parameters; without the check, writing a policy would grant read access.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision
from pilothouse.apiserver.registry.operations import RequestContext, Result, Updated, UpdateRequest, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import RegistryView
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Path, forbidden
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, name_of, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

ANY = "*"

ResolveKind: TypeAlias = Callable[[GroupVersionKind], str | None]
"""Returns the resource of a kind, or None for an unserved kind."""
GetPolicy: TypeAlias = Callable[[str], Awaitable[Json | None]]


@dataclass(frozen=True, slots=True)
class _Params:
    """The parameter resource to authorize; wildcards unless known."""

    group: str = ANY
    version: str = ANY
    resource: str = ANY
    doubt: str = ""
    """Why no less than everything will do."""


@dataclass(frozen=True, slots=True)
class ParamKindAccess:
    """Requires read access to all objects of a policy's paramKind."""

    authorizer: Authorizer
    resolve: ResolveKind

    async def refusal(self, user: User, obj: Json, old: Json | None) -> str:
        kind = part(obj, "spec").get("paramKind")
        if kind is None or SYSTEM_PRIVILEGED_GROUP in user.groups:
            return ""
        if old is not None and semantically_equal(part(old, "spec").get("paramKind"), kind):
            return ""
        target = _target(kind, self.resolve)
        if await _may_read(self.authorizer, user, "get", target, name=ANY, namespace=ANY):
            return ""
        described = f"(kind={text(kind, 'kind')}, apiVersion={text(kind, 'apiVersion')})"
        return f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind {described}'


@dataclass(frozen=True, slots=True)
class ParamRefAccess:
    """Requires read access to the objects of a binding's paramRef."""

    authorizer: Authorizer
    resolve: ResolveKind
    policy: GetPolicy

    async def refusal(self, user: User, obj: Json, old: Json | None) -> str:
        spec = part(obj, "spec")
        reference = spec.get("paramRef")
        if reference is None or SYSTEM_PRIVILEGED_GROUP in user.groups:
            return ""
        if old is not None and _same_reference(spec, part(old, "spec")):
            return ""
        verb, target = "get" if text(reference, "name") else "list", await self._target(text(spec, "policyName"))
        name, namespace = text(reference, "name"), text(reference, "namespace")
        if await _may_read(self.authorizer, user, verb, target, name=name, namespace=namespace):
            return ""
        if target.doubt:
            lack = f'user {_shown(user)} does not have "{verb}" permission for all groups, versions and resources'
            return f"unable to {target.doubt} to determine minimum required permissions and {lack}"
        return f'user {_shown(user)} does not have "{verb}" permission on the object referenced by paramRef'

    async def _target(self, policy_name: str) -> _Params:
        policy = await self.policy(policy_name)
        if policy is None:
            return _Params(doubt=f"get policy {policy_name}")
        kind = part(policy, "spec").get("paramKind")
        return _Params() if kind is None else _target(kind, self.resolve)


def _target(kind: Json, resolve: ResolveKind) -> _Params:
    rendered = f"paramKind &ParamKind{{APIVersion:{text(kind, 'apiVersion')},Kind:{text(kind, 'kind')},}}"
    try:
        version = GroupVersion.parse(text(kind, "apiVersion"))
    except ValueError:
        return _Params(doubt=f"parse {rendered}")
    resource = resolve(version.kind(text(kind, "kind")))
    doubt = "" if resource else f"resolve {rendered}"
    return _Params(version.group, version.version, resource or ANY, doubt)


def _same_reference(spec: Json, old: Json) -> bool:
    return all(semantically_equal(spec.get(field), old.get(field)) for field in ("paramRef", "policyName"))


async def _may_read(
    authorizer: Authorizer, user: User, verb: str, target: _Params, *, name: str, namespace: str
) -> bool:
    attributes = Attributes(
        user,
        verb,
        is_resource=True,
        group=target.group,
        version=target.version,
        resource=target.resource,
        name=name,
        namespace=namespace,
    )
    return (await authorizer.authorize(attributes)).decision is Decision.ALLOW


def _shown(user: User) -> str:
    """Format the user as Go's %v does."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


class ParamAccess(Protocol):
    async def refusal(self, user: User, obj: Json, old: Json | None) -> str:
        """Return the reason to reject the write, or an empty string."""


class ParamCheckedStorage(RegistryView):
    """The storage of policies or bindings. Access is checked after the strategy's own rules, and before admission's
    last word."""

    def __init__(self, registry: RegistryStore, access: ParamAccess, path: Path) -> None:
        super().__init__(registry)
        self._access = access
        self._path = path

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await super().create(ctx, obj, options=options, validate=self._checked(ctx, validate))

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        async def checked(obj: Json, old: Json) -> None:
            await self._check(ctx, obj, old)
            await update.validate_update(obj, old)

        create = self._checked(ctx, update.validate_create)
        return await super().update(ctx, name, replace(update, validate_create=create, validate_update=checked))

    def _checked(self, ctx: RequestContext, validate: Validate) -> Validate:
        async def checked(obj: Json) -> None:
            await self._check(ctx, obj, None)
            await validate(obj)

        return checked

    async def _check(self, ctx: RequestContext, obj: Json, old: Json | None) -> None:
        if reason := await self._access.refusal(ctx.user, obj, old):
            raise Invalid.of(self.resource.kind.group_kind, name_of(obj), [forbidden(self._path, reason)])
