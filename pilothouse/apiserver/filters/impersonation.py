"""Impersonation: run the request as another user, if authorized."""

from __future__ import annotations

from collections.abc import Awaitable
from urllib.parse import unquote

from pilothouse.apiserver.authn.interface import InvalidIdentity, identity
from pilothouse.apiserver.authn.user import User, user_info
from pilothouse.apiserver.authz.impersonation import Impersonator
from pilothouse.apiserver.authz.interface import Authorizer, attributes_of
from pilothouse.apiserver.head_fields import FIELD_OVERHEAD
from pilothouse.apiserver.http import NO_SNIFFING, Filter, Handler, Headers, Request, Response
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.status_error import StatusError

_PREFIX = b"impersonate-"
_API = "authentication.k8s.io/v1"
_EXTRA = b"impersonate-extra-"
_MARK = b"\0" + _PREFIX
"""The header names in the format of `Request.header_names`."""


def with_impersonation(authorizer: Authorizer) -> Filter:
    """Impersonate, and remove the headers, so that later code cannot distinguish an impersonated user."""
    impersonator = Impersonator(authorizer)

    def wrap(handler: Handler) -> Handler:
        def impersonate(request: Request) -> Awaitable[Response]:
            return go_on_as_another(request) if _MARK in request.header_names else handler(request)

        async def go_on_as_another(request: Request) -> Response:
            try:
                await _go_on_as_wanted(impersonator, request)
            except StatusError:
                request.answer_headers.append(NO_SNIFFING)
                raise
            request.set_headers([pair for pair in request.headers if not pair[0].startswith(_PREFIX)])
            return await handler(request)

        return impersonate

    return wrap


async def _go_on_as_wanted(impersonator: Impersonator, request: Request) -> None:
    wanted = await offload_by_size(len(request.headers) * FIELD_OVERHEAD, wanted_user, request.headers)
    if wanted is None:
        return
    request.user, constraint = await impersonator.impersonated_user(wanted, attributes_of(request))
    if request.audit is not None:
        request.audit.log_impersonated_user(user_info(request.user), constraint)


def wanted_user(headers: Headers) -> User | None:
    """Return the user that the headers describe; None without impersonation headers.

    Raises BadRequest for parts without a name, and for control characters, which upstream accepts.
    """
    values: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name.startswith(_PREFIX):
            values.setdefault(name, []).append(value.decode("latin-1"))
    try:
        wanted = identity(
            values.get(b"impersonate-user", [""])[0],
            uid=values.get(b"impersonate-uid", [""])[0],
            groups=values.get(b"impersonate-group", ()),
            extra=_extra(values),
        )
    except InvalidIdentity as error:
        raise BadRequest(f"cannot impersonate: {error}") from None
    if not wanted.name and (wanted.uid or wanted.groups or wanted.extra):
        if enabled("ConstrainedImpersonation"):
            raise BadRequest(f"requested {_go_syntax(wanted)} without impersonating a user name")
        raise BadRequest(f"requested {_as_references(wanted)} without impersonating a user")
    return wanted if wanted.name else None


def _extra(values: dict[bytes, list[str]]) -> dict[str, list[str]]:
    found = {name: texts for name, texts in values.items() if name.startswith(_EXTRA)}
    return {unquote(name[len(_EXTRA) :].decode("latin-1").lower()): texts for name, texts in found.items()}


def _as_references(user: User) -> str:
    """Return the parts of the user as Go prints object references: kind, namespace, name, uid, version and field."""
    extra = [f"{{UserExtra  {value}  {_API}  {key}}}" for key, values in user.extra.items() for value in values]
    uid = [f"{{UID  {user.uid}  {_API}  }}"] if user.uid else []
    return f"[{' '.join([*(f'{{Group  {group}    }}' for group in user.groups), *extra, *uid])}]"


def _go_syntax(user: User) -> str:
    """Return the user in the format of Go's %#v, which upstream's message uses."""
    extra = ", ".join(f"{quote(key)}:{_strings(values)}" for key, values in sorted(user.extra.items()))
    shown = f"map[string][]string{{{extra}}}" if user.extra else "map[string][]string(nil)"
    parts = f"Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{_strings(user.groups)}, Extra:{shown}"
    return f"&user.DefaultInfo{{{parts}}}"


def _strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"
