"""The store of a running server, page by page, for its administrators: GET /maintenance/store.

    ?revision=412      the revision to read at; the current one if it is not given, and the answer says which it is
    ?after=KEY         only what comes behind the key, so that one page follows the other
    ?prefix=/secrets/  only keys that begin with this, behind the root of the store

    {"revision":412,"root":"/registry","more":true,"entries":[{"key":"/registry/namespaces/default",…},…]}

Values are as the store has them, encrypted ones encrypted. Members of system:masters alone may ask: what is there is
more than any role is given. A page is bounded in bytes, so that neither memory nor the event loop feel the whole store.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.resource_version import parse_resource_version
from pilothouse.apiserver.storage.backup.model import SavedEntry, line_of
from pilothouse.apiserver.storage.interface import Entry, Page
from pilothouse.apiserver.storage.snapshots import Snapshots
from pilothouse.machinery.errors import Forbidden, MethodNotAllowed
from pilothouse.machinery.names import GroupResource

PATH: Final = "/maintenance/store"
_STORE: Final = GroupResource("", "store")
_AT_ONCE: Final = 100  # entries that the store is asked for in one call
_ENOUGH: Final = 2 << 20  # bytes of a page


class StoreEndpoint:
    """Reads what `snapshots` would save."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    async def answer(self, request: Request) -> Response:
        """Raises Forbidden, MethodNotAllowed, Expired for a revision that the store has forgotten."""
        if request.user is None or SYSTEM_PRIVILEGED_GROUP not in request.user.groups:
            raise Forbidden(f"only members of {SYSTEM_PRIVILEGED_GROUP} may read {PATH}")
        if request.method != "GET":
            raise MethodNotAllowed(f"{PATH} can only be read")
        with map_storage_errors(_STORE):
            prefix = f"{self._snapshots.root}/{request.param('prefix').removeprefix('/')}"
            at = parse_resource_version(request.param("revision"))
            after = request.param("after")
            store = self._snapshots.store
            page = await store.list(prefix, at=at or await store.current_revision(), after=after, limit=_AT_ONCE)
            size = sum(len(entry.value) for entry in page.entries)
            while page.remaining and size < _ENOUGH:
                more = await store.list(prefix, at=page.revision, after=page.entries[-1].key, limit=_AT_ONCE)
                size += sum(len(entry.value) for entry in more.entries)
                page = Page([*page.entries, *more.entries], page.revision, more.remaining)
        answer: dict[str, Any] = {"revision": page.revision, "root": self._snapshots.root, "more": page.remaining > 0}
        answer["entries"] = [line_of(self._saved(entry)) for entry in page.entries]
        return Response(200, orjson.dumps(answer), [(b"content-type", b"application/json")])

    def _saved(self, entry: Entry) -> SavedEntry:
        """Return the entry with the TTL of a new key: the store does not report the remaining TTL."""
        ttl = self._snapshots.lifetime(entry.key)
        return SavedEntry(entry.key, entry.value, entry.created, entry.modified, ttl)
