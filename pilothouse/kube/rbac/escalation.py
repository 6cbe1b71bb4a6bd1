"""Prevention of privilege escalation.

Writing a role requires all its rights, or `escalate` on the role. Writing a binding requires all rights of the role, or
`bind` on the role. Members of system:masters hold all rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Protocol

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry import operations
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.view import RegistryView
from pilothouse.kube.rbac.authorizer import PolicyFeed
from pilothouse.kube.rbac.missing_rights import MissingRights, missing_rights
from pilothouse.kube.rbac.policy import RoleRef
from pilothouse.kube.rbac.rules import ALL, PolicyRule
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.gofmt import quote, quoted_list
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.status_error import StatusError, aggregate
from pilothouse.machinery.validation.immutable import semantically_equal

_EVERYTHING = (PolicyRule((ALL,), (ALL,), (ALL,)), PolicyRule((ALL,), paths=(ALL,)))
_SIZE_OF_A_WORD = 8
"""In bytes of a body, to judge whether the check is worth a thread."""
_RESOURCES = {"Role": "roles", "ClusterRole": "clusterroles"}

_GARBAGE_COLLECTION = ("ownerReferences", "finalizers", "selfLink", "managedFields")


@dataclass(frozen=True, slots=True)
class Escalation:
    """Checks of one write. `old` is None for creates."""

    authorizer: Authorizer
    feed: PolicyFeed

    async def check_role(self, ctx: operations.RequestContext, obj: Json, *, old: Json | None, name: str) -> None:
        """Check a role. `name` is the name in the path, empty for creates. Raise Forbidden."""
        if may_everything(ctx) or await self._allowed(ctx, "escalate", ctx.resource, name=name):
            return
        await self._require(ctx, obj, [PolicyRule.of(rule) for rule in obj.get("rules") or ()])
        # The writer cannot know the rights that an aggregated role collects.
        if (_is_aggregated(obj) or _is_aggregated(old or {})) and (await self._missing(ctx, _EVERYTHING)).rules:
            raise _forbidden(ctx, obj, "must have cluster-admin privileges to use the aggregationRule")

    async def check_binding(self, ctx: operations.RequestContext, obj: Json, *, old: Json | None, name: str) -> None:
        """Raises Forbidden, NotFound."""
        reference = obj.get("roleRef") or {}
        role = RoleRef(reference.get("kind", ""), reference.get("name", ""), ctx.namespace)
        if may_everything(ctx):
            return
        resource = GroupResource(reference.get("apiGroup", ""), _RESOURCES.get(role.kind, ""))
        if resource.resource and await self._allowed(ctx, "bind", resource, name=role.name):
            return
        await self.feed.catch_up()
        result = self.feed.policy.role(role)
        if result is None:
            # As upstream does, name the written resource.
            raise NotFound.of(ctx.resource, role.name) if resource.resource else StatusError(role.missing)
        await self._require(ctx, obj, result.rules)

    async def _allowed(self, ctx: operations.RequestContext, verb: str, role: GroupResource, *, name: str) -> bool:
        attributes = Attributes(
            user=ctx.user,
            verb=verb,
            is_resource=True,
            group=role.group,
            version="*",
            resource=role.resource,
            namespace=ctx.namespace,
            name=name,
        )
        return (await self.authorizer.authorize(attributes)).decision is Decision.ALLOW

    async def _require(self, ctx: operations.RequestContext, obj: Json, rules: Sequence[PolicyRule]) -> None:
        await self.feed.catch_up()
        missing = await self._missing(ctx, rules)
        if missing.rules:
            raise _forbidden(ctx, obj, self._complaint(ctx, missing))

    async def _missing(self, ctx: operations.RequestContext, rules: Sequence[PolicyRule]) -> MissingRights:
        owned = self.feed.policy.access(ctx.user, ctx.namespace).rules
        words = sum(rule.words for rule in (*owned, *rules))
        return await offload_by_size(words * _SIZE_OF_A_WORD, missing_rights, owned, rules)

    def _complaint(self, ctx: operations.RequestContext, missing: MissingRights) -> str:
        user = f"user {quote(ctx.user.name)} (groups={quoted_list(ctx.user.groups)})"
        lines = sorted({str(rule) for rule in missing.rules})
        if not missing.is_all:
            lines.append("and more")
        complaint = f"{user} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
        unknown = self.feed.policy.access(ctx.user, ctx.namespace).missing
        if not unknown:
            return complaint
        problems = (f"{ctx.resource} {quote(role.name)} not found" for role in unknown)
        return f"{complaint}; resolution errors: [{aggregate(problems)}]"


def may_everything(ctx: operations.RequestContext) -> bool:
    return SYSTEM_PRIVILEGED_GROUP in ctx.user.groups


def _is_aggregated(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _forbidden(ctx: operations.RequestContext, obj: Json, reason: str) -> Forbidden:
    return Forbidden.of(ctx.resource, name_of(obj), reason)


class EscalationCheck(Protocol):
    """Raises to reject. `old` is None for creates; `name` is empty without a name in the path."""

    async def __call__(self, ctx: operations.RequestContext, obj: Json, *, old: Json | None, name: str) -> None: ...


class PolicyBasedStorage(RegistryView):
    def __init__(self, registry: RegistryStore, check: EscalationCheck) -> None:
        super().__init__(registry)
        self._check = check

    async def create(
        self, ctx: operations.RequestContext, obj: Json, *, options: WriteOptions, validate: operations.Validate
    ) -> operations.Result:
        await self._check(ctx, obj, old=None, name="")
        return await super().create(ctx, obj, options=options, validate=validate)

    async def update(
        self, ctx: operations.RequestContext, name: str, update: operations.UpdateRequest
    ) -> operations.Updated:
        if not may_everything(ctx):
            update = replace(update, make=self._checked(ctx, name, update.make))
        return await super().update(ctx, name, update)

    def _checked(self, ctx: operations.RequestContext, name: str, make: operations.MakeObject) -> operations.MakeObject:
        async def checked(current: Json | None) -> Json:
            old = deepcopy(current)
            obj = await make(current)
            if old is None or not only_for_garbage_collection(obj, old):
                await self._check(ctx, obj, old=old, name=name)
            return obj

        return checked


def only_for_garbage_collection(obj: Json, old: Json) -> bool:
    """Report whether the update changes only owner references and finalizers, as the garbage collector does."""
    return semantically_equal(_without_links(obj), _without_links(old))


def _without_links(obj: Json) -> Json:
    meta = {key: value for key, value in metadata(obj).items() if key not in _GARBAGE_COLLECTION}
    return {**obj, "metadata": meta}
