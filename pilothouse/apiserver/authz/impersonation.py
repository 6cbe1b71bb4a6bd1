"""Impersonation: authorizes every part of the requested user.

Constrained modes are tried first, narrowest first. Each mode checks whether the requestor may make *this* request as a
user of the mode's type (`impersonate-on:MODE:VERB`), then checks each part (`impersonate:MODE`). The legacy mode checks
only the parts (`impersonate`). The first mode that allows decides; otherwise the first refusal is returned. The last
successful mode of a requestor is tried before all others.

    associated-node   a service account as the node of its pod
    arbitrary-node    any node                       serviceaccount   any service account
    user-info         any other user, with groups, uid and extra
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pilothouse.apiserver.authn import user
from pilothouse.apiserver.authn.service_accounts import NODE_NAME, group_names, service_account_name
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision, forbidden
from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.event_loop import yield_periodically

_AUTHENTICATION = "authentication.k8s.io"
_NODE_PREFIX = "system:node:"
_NODES_GROUP = "system:nodes"
_MANY = 4
_PER_TURN = 64
"""Parts authorized per turn of the event loop: a few milliseconds."""
_ENTRY_BYTES = 200
_BYTES_PER_CHARACTER = 4


def node_name(username: str) -> str:
    """Return the node of a username, or an empty string for other users."""
    return username.removeprefix(_NODE_PREFIX) if username.startswith(_NODE_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class Mode:
    """An impersonation mode. `applies` is a predicate on the requested user."""

    name: str
    applies: Callable[[user.User, user.User], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


def _only_name(wanted: user.User) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _is_own_node(wanted: user.User, requestor: user.User) -> bool:
    own = requestor.extra.get(NODE_NAME, ())
    account = service_account_name(requestor.name)
    return _only_name(wanted) and account is not None and own == (node_name(wanted.name),)


MODES = (
    Mode("associated-node", _is_own_node),
    Mode("arbitrary-node", lambda wanted, _: _only_name(wanted) and bool(node_name(wanted.name))),
    Mode("serviceaccount", lambda wanted, _: _only_name(wanted) and service_account_name(wanted.name) is not None),
    Mode("user-info", lambda wanted, _: not node_name(wanted.name) and service_account_name(wanted.name) is None),
    Mode("", lambda wanted, requestor: True),
)


class Impersonator:
    """Tries the requestor's last successful mode first, so that refusals refer to the mode in use."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last_mode: BoundedCache[str, Mode] = BoundedCache(entries=10_000, total_bytes=4 << 20)

    async def impersonated_user(self, wanted: user.User, attributes: Attributes) -> tuple[user.User, str]:
        """Return the impersonated user and the verb of the constrained mode, if any. Raises Forbidden."""
        first_refusal: Forbidden | None = None
        for mode in self._modes(attributes.user):
            if not mode.applies(wanted, attributes.user):
                continue
            try:
                allowed = await Impersonation(self._authorizer, mode, attributes).authorize(wanted)
            except Forbidden as refusal:
                first_refusal = first_refusal or refusal
            else:
                requestor = attributes.user
                self._last_mode.put(
                    requestor.name, mode, size=_ENTRY_BYTES + len(requestor.name) * _BYTES_PER_CHARACTER
                )
                return allowed, mode.verb if mode.name else ""
        assert first_refusal is not None, "the last mode is for everybody"
        raise first_refusal

    def _modes(self, requestor: user.User) -> Iterable[Mode]:
        if not enabled("ConstrainedImpersonation"):
            return MODES[-1:]
        last = self._last_mode.get(requestor.name)
        return MODES if last is None else (last, *(mode for mode in MODES if mode is not last))


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The checks of a mode for a request."""

    authorizer: Authorizer
    mode: Mode
    attributes: Attributes

    async def authorize(self, wanted: user.User) -> user.User:
        """Return the requested user with all groups. Raises Forbidden."""
        if self.mode.name:
            verb = f"impersonate-on:{self.mode.name}:{self.attributes.verb}"
            await self._authorize(replace(self.attributes, verb=verb))
        # Groups of nodes and service accounts derive from the name.
        part, groups = self._part("users", wanted.name), wanted.groups
        account = service_account_name(wanted.name)
        if self.mode.name and node_name(wanted.name):
            shown = "*" if self.mode.name == "associated-node" else node_name(wanted.name)
            part, groups = replace(part, resource="nodes", name=shown), (_NODES_GROUP,)
        elif account is not None:
            part = replace(part, resource="serviceaccounts", namespace=account.namespace, name=account.name)
            groups = groups or group_names(account.namespace)
        await self._authorize(part)
        if wanted.uid:
            await self._authorize(self._part("uids", wanted.uid, group=_AUTHENTICATION))
        await self._authorize_groups(wanted.groups)
        await self._authorize_extra(wanted.extra)
        return replace(wanted, groups=_with_standing(wanted.name, groups))

    async def _authorize_groups(self, groups: tuple[str, ...]) -> None:
        part = self._part("groups", "")
        if self.mode.name and "" in groups:
            raise forbidden(part, "impersonating the empty string group is not allowed")
        if self.mode.name and user.SYSTEM_PRIVILEGED_GROUP in groups:
            privileged = replace(part, name=user.SYSTEM_PRIVILEGED_GROUP)
            raise forbidden(privileged, "impersonating the system:masters group is not allowed")
        if self.mode.name and len(groups) >= _MANY and await self._allowed(replace(part, name="*")):
            return
        await self._authorize_each([replace(part, name=group) for group in groups])

    async def _authorize_extra(self, extra: dict[str, tuple[str, ...]]) -> None:
        part = self._part("userextras", "", group=_AUTHENTICATION)
        if self.mode.name and any(not key or not values or "" in values for key, values in extra.items()):
            raise forbidden(part, "impersonating empty keys or values in extra is not allowed")
        many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
        if self.mode.name and many and await self._allowed(replace(part, subresource="*", name="*")):
            return
        await self._authorize_each(
            [replace(part, subresource=key, name=value) for key, values in extra.items() for value in values]
        )

    def _part(self, resource: str, name: str, *, group: str | None = None) -> Attributes:
        default = _AUTHENTICATION if self.mode.name else ""
        return Attributes(
            user=self.attributes.user,
            verb=self.mode.verb,
            is_resource=True,
            group=default if group is None else group,
            version="v1",
            resource=resource,
            name=name,
        )

    async def _authorize_each(self, parts: Sequence[Attributes]) -> None:
        """Authorize the parts in order, yielding to the event loop: request headers may carry thousands of parts."""
        async for part in yield_periodically(parts, every=_PER_TURN):
            await self._authorize(part)

    async def _allowed(self, attributes: Attributes) -> bool:
        return (await self.authorizer.authorize(attributes)).decision is Decision.ALLOW

    async def _authorize(self, attributes: Attributes) -> None:
        answer = await self.authorizer.authorize(attributes)
        if answer.decision is not Decision.ALLOW:
            raise forbidden(attributes, answer.reason)


def _with_standing(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups, including system:authenticated or system:unauthenticated."""
    if name == user.ANONYMOUS:
        return groups if user.ALL_UNAUTHENTICATED in groups else (*groups, user.ALL_UNAUTHENTICATED)
    if user.ALL_UNAUTHENTICATED in groups or user.ALL_AUTHENTICATED in groups:
        return groups
    return (*groups, user.ALL_AUTHENTICATED)
