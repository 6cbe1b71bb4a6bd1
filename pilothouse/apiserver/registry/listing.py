"""Lists and watches of a resource, with upstream's resourceVersion semantics.

resourceVersion   match            served from
""                                 watch cache, after it has caught up with the store
"0"                                watch cache as it is; limit is ignored
n                 NotOlderThan     watch cache, once it has reached n
n                 Exact            watch cache or store, at n      (also n with a limit and no match)
continue token                     watch cache or store, at the revision of the first page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.operations import ListResult, RequestContext
from pilothouse.apiserver.registry.options import ListOptions
from pilothouse.apiserver.registry.resource_version import parse_resource_version
from pilothouse.apiserver.storage.cacher.selection import SelectionPredicate
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.machinery.errors import BadRequest, Expired
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.names import is_valid_path_segment_name, name_is_dns_label

if TYPE_CHECKING:
    from pilothouse.apiserver.registry.store import RegistryStore
import base64
import binascii
import posixpath
from typing import Any

import orjson

from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import json_type

_TOO_OLD_TO_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def predicate(options: ListOptions) -> SelectionPredicate | None:
    """Return the predicate of the selectors; None if everything matches."""
    return None if options.selects_everything else SelectionPredicate(options.label_selector, options.field_selector)


async def list_objects(registry: RegistryStore, ctx: RequestContext, options: ListOptions) -> ListResult:
    prefix, wanted = await ctx.weight.run(_selected, registry, ctx, options)
    with map_storage_errors(ctx.resource, has_watch_cache=registry.resource.has_watch_cache):
        if options.continue_token:
            position = decode_continue_token(options.continue_token, prefix)
            if options.resource_version not in ("", "0"):
                raise BadRequest("specifying resource version is not allowed when using continue")
            try:
                return await _page(registry, prefix, wanted, options, at=position.revision, after=position.after)
            except Compacted:
                error = Expired(_TOO_OLD_TO_CONTINUE)
                error.list_metadata = {"continue": encode_continue_token(Position(position.after, None), prefix)}
                raise error from None
        version = _list_version(options.resource_version)
        if version and _is_exact(options):
            return await _page(registry, prefix, wanted, options, at=version)
        return await _page(registry, prefix, wanted, options, not_older_than=version)


async def watch_objects(
    registry: RegistryStore, ctx: RequestContext, options: ListOptions, *, deadline: float
) -> CacheWatcher:
    version = parse_resource_version(options.resource_version)
    prefix, wanted = await ctx.weight.run(_selected, registry, ctx, options)
    with map_storage_errors(ctx.resource, has_watch_cache=registry.resource.has_watch_cache):
        return await registry.cacher.watch(
            prefix,
            after=version if options.resource_version else None,
            predicate=wanted,
            send_initial_events=options.send_initial_events,
            bookmarks=options.allow_watch_bookmarks,
            deadline=deadline,
            expires=not ctx.is_own,
        )


def _selected(
    registry: RegistryStore, ctx: RequestContext, options: ListOptions
) -> tuple[str, SelectionPredicate | None]:
    """Return the key prefix and the predicate of the selectors. Slow for long selectors."""
    return _prefix(registry, ctx, options), predicate(options)


def _prefix(registry: RegistryStore, ctx: RequestContext, options: ListOptions) -> str:
    """Return the narrowest prefix that contains all possible matches."""
    namespace = ctx.namespace if registry.keys.namespaced else ""
    selected = options.field_selector.requires_exact_match("metadata.namespace")
    if not namespace and selected and not name_is_dns_label(selected):
        namespace = selected if registry.keys.namespaced else ""
    name = options.field_selector.requires_exact_match("metadata.name")
    if name and not is_valid_path_segment_name(name) and (namespace or not registry.keys.namespaced):
        return registry.keys.object(namespace, name)
    return registry.keys.collection(namespace)


def _is_exact(options: ListOptions) -> bool:
    match = options.resource_version_match
    return match == "Exact" or (not match and options.limit > 0)


def _list_version(text: str) -> int | None:
    """Return the minimum revision of a list: None for a consistent list, 0 for any cached state."""
    if not text:
        return None
    try:
        return parse_resource_version(text)
    except StatusError as error:
        raise BadRequest(f"invalid resource version: {error.message}") from None


async def _page(
    registry: RegistryStore,
    prefix: str,
    wanted: SelectionPredicate | None,
    options: ListOptions,
    *,
    at: int | None = None,
    not_older_than: int | None = None,
    after: str = "",
) -> ListResult:
    page = await registry.cacher.list(
        prefix,
        at=at,
        not_older_than=not_older_than,
        after=after,
        # resourceVersion=0 ignores the limit, as upstream.
        limit=0 if options.resource_version == "0" else options.limit,
        matches=wanted,
    )
    if not page.remaining:
        return ListResult(page.objects, page.revision)
    token = encode_continue_token(Position(page.objects[-1].key, page.revision), prefix)
    return ListResult(page.objects, page.revision, token, page.remaining if options.selects_everything else None)


_VERSION = "meta.k8s.io/v1"
_INCONSISTENT = -1
_INT64 = range(-(2**63), 2**63)
_TYPES: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}


@dataclass(frozen=True, slots=True)
class Position:
    """The page starts after the key `after`. Revision None means the current revision."""

    after: str
    revision: int | None


def encode_continue_token(position: Position, prefix: str) -> str:
    # Upstream encodes the first possible key after the last returned key.
    start = position.after.removeprefix(prefix) + "\x00"
    revision = _INCONSISTENT if position.revision is None else position.revision
    raw = orjson.dumps({"v": _VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_continue_token(token: str, prefix: str) -> Position:
    """Return the position in a token. The position is always inside `prefix`. Raises BadRequest."""
    value = _fields(_json(_bytes(token)))
    if value.get("v") != _VERSION:
        raise _invalid(f": server does not recognize this encoded version {value.get('v') or ''}")
    revision, start = value.get("rv") or 0, value.get("start") or ""
    if not revision:
        raise _invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start:
        raise _invalid(": encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else "/" + start
    if posixpath.normpath(key) != key or key.startswith("//"):  # POSIX, unlike Go, treats // as clean
        raise _invalid(f": {start}")
    return Position(prefix + key[1:].removesuffix("\x00"), None if revision < 0 else revision)


def _bytes(token: str) -> bytes:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(f": illegal base64 data at input byte {_first_bad(token)}") from None


def _json(raw: bytes) -> object:
    try:
        return parse(raw).value
    except JsonError as error:
        raise _invalid(f": {error}") from None


def _fields(value: Any) -> dict[str, Any]:
    """Check the types of the fields: clients can forge tokens."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f": json: cannot unmarshal {json_type(value)} into Go value of type storage.continueToken")
    for name, (kind, go_type) in _TYPES.items():
        found = value.get(name)
        if found is not None and (type(found) is not kind or (kind is int and found not in _INT64)):
            shown = f"number {found}" if type(found) in (int, float) else json_type(found)
            raise _invalid(
                f": json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {go_type}"
            )
    return value


def _first_bad(token: str) -> int:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return next((i for i, char in enumerate(token) if char not in alphabet), len(token) - len(token) % 4)


def _invalid(detail: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid{detail}")
