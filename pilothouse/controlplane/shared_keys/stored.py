"""Shared keys in the store. The first server stores the keys encrypted; other servers decrypt them with the join token.

The data directory keeps the token (for users) and the cluster key, which decrypts the record even after the token has
changed. The token is written before the record, so that a crash in between does not lock the server out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import orjson

from pilothouse.apiserver.storage.errors import Compacted, KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Revision, Store
from pilothouse.controlplane.shared_keys.directory import RETIRED, SharedKeys, completed, read_keys
from pilothouse.controlplane.shared_keys.record import (
    JoinRefused,
    JoinToken,
    Opened,
    new_cluster_key,
    open_with_key,
    open_with_token,
)
from pilothouse.controlplane.shared_keys.rotation import blocks
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.files import PRIVATE, write_atomically

log = logging.getLogger(__name__)

FOLDER: Final = "/pilothouse.dev/sharedkeys/"
"""Key below the root of the store."""
_MOST_ATTEMPTS: Final = 10

_NEEDS_JOIN: Final = (
    "the store has the keys of a cluster, and this server has none: give it --join with the token that"
    " 'pilothouse join-token' prints on a server of the cluster, or the --pki-dir of the cluster"
)
_OF_ITS_OWN: Final = "the data directory has a CA that is not the cluster's: join with an empty data directory"


_OLDER_RECORD: Final = (
    "the store has an older record of the shared keys than this server has seen, and the keys in the data directory are"
    " not those of the newer one. If you have restored an old backup, delete cluster-newest.json in the data directory"
)
_NEWEST: Final = "cluster-newest.json"


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest record that this server has read."""

    generation: int
    digest: str
    """Digest of the keys."""


def _digest(keys: SharedKeys) -> str:
    return hashlib.sha256(repr(sorted(keys.items())).encode()).hexdigest()


class StoredKeys:
    def __init__(self, store: Store, root: str, data_dir: Path, token: str = "") -> None:
        """Create the source. `given` is the text of a join token, or empty. Raises JoinRefused for a malformed
        token."""
        self._store, self._folder = store, root + FOLDER
        self._key = self._folder + "cluster"
        self._data_dir = data_dir
        self._given = JoinToken.parse(token) if token else None
        self._revision: Revision = 0
        self._stands_alone = False

    def __str__(self) -> str:
        return f"{self._key} in the store"

    async def current(self) -> SharedKeys:
        """Return the keys. If the store has no record, store the keys of the data directory or new keys.

        Raises JoinRefused before any change, CertificateError, StorageError, OSError.
        """
        entry = await self._store.get(self._key) or await self._created()
        self._revision = entry.modified
        own = await asyncio.to_thread(read_keys, self._data_dir / "pki")
        try:
            opened = self._open(entry.value, own)
        except JoinRefused:
            if "ca.crt" not in own or self._given or self._cluster_key.exists():
                raise
            # The data directories were created by hand, and the keys of another server are in the store.
            log.warning(
                "The store has keys of the cluster that this server can not open: its own stay, and follow nothing."
            )
            self._stands_alone = True
            return own
        newest = self._newest
        if newest is not None and opened.generation < newest.generation:
            return await self._put_back(entry, replace(opened, keys=own), newest)
        self._keep(opened)
        return opened.keys

    async def _put_back(self, entry: Entry, own: Opened, newest: _Newest) -> SharedKeys:
        """Replace an older record by the keys of this server. Without this check, write access to the store would
        suffice to make all servers trust retired keys. Raises JoinRefused, StorageError."""
        if newest.digest != _digest(own.keys):
            raise JoinRefused(_OLDER_RECORD)
        log.error("The store has an older record of the shared keys than this server has seen: it is replaced.")
        restored = replace(own, token=self._kept_token() or own.token, generation=newest.generation)
        try:
            self._revision = (await self._store.update(self._key, restored.sealed, expected=entry.modified)).modified
        except (RevisionConflict, KeyNotFound):
            return await self.current()
        return restored.keys

    async def known(self) -> SharedKeys:
        """Return the keys without creating any. Raises JoinRefused, StorageError, OSError."""
        return (await self._opened())[1].keys

    async def change(self, change: Callable[[SharedKeys], SharedKeys]) -> SharedKeys:
        """Store the result of `change` and return the result. Raises JoinRefused, StorageError, OSError, and the
        exceptions of `change`."""
        return (await self._update(lambda opened: replace(opened, keys=change(opened.keys)))).keys

    async def change_token(self, token: JoinToken) -> None:
        """Replace the join token. Raises JoinRefused, StorageError, OSError."""
        await self._update(lambda opened: replace(opened, token=token))

    async def changed(self) -> None:
        """Wait until the keys may differ from the result of `current`. Raises StorageError."""
        if self._stands_alone:
            await asyncio.Event().wait()
        try:
            async with aclosing(self._store.watch(self._folder, after=self._revision)) as watch:
                async for batch in watch:
                    if batch.events:
                        return
        except Compacted:
            return

    async def _created(self) -> Entry:
        token = self._given or self._kept_token() or JoinToken.new()
        self._keep_token(token)
        keys = await asyncio.to_thread(completed, read_keys(self._data_dir / "pki"), self._data_dir)
        cluster_key = self._cluster_key.read_bytes() if self._cluster_key.exists() else new_cluster_key()
        newest = self._newest
        opened = Opened(cluster_key, token, keys, newest.generation if newest else 0)
        try:
            return await self._store.create(self._key, opened.sealed)
        except KeyExists:
            return await self._store.get(self._key) or await self._created()

    def _open(self, record: bytes, own: SharedKeys) -> Opened:
        """Decrypt the record. Raises JoinRefused."""
        if self._cluster_key.exists():
            return open_with_key(record, self._cluster_key.read_bytes())
        if self._given:
            opened = open_with_token(record, self._given)
            cluster = opened.keys
            cluster_cas = {*blocks(cluster["ca.crt"]), *blocks(cluster.get(RETIRED, b""))}
            if not all(block in cluster_cas for block in blocks(own.get("ca.crt", b""))):
                raise JoinRefused(_OF_ITS_OWN)
            return opened
        if (token := self._kept_token()) is None:
            raise JoinRefused(_NEEDS_JOIN)
        try:
            return open_with_token(record, token)
        except JoinRefused:  # the token of an own record that lost the race of creation
            raise JoinRefused(_NEEDS_JOIN) from None

    async def _opened(self) -> tuple[Entry, Opened]:
        """Return the record of a joined server. Raises JoinRefused."""
        entry = await self._store.get(self._key)
        if entry is None or not self._cluster_key.exists():
            raise JoinRefused(f"the data directory {self._data_dir} has not joined the cluster of this store")
        return entry, open_with_key(entry.value, self._cluster_key.read_bytes())

    async def _update(self, change: Callable[[Opened], Opened]) -> Opened:
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            entry, opened = await self._opened()
            changed = replace(change(opened), generation=opened.generation + 1)
            try:
                await self._store.update(self._key, changed.sealed, expected=entry.modified)
                break
            except (RevisionConflict, KeyNotFound):
                if attempt == _MOST_ATTEMPTS:
                    raise
        self._keep(changed)
        return changed

    @property
    def _cluster_key(self) -> Path:
        return self._data_dir / "cluster.key"

    def _kept_token(self) -> JoinToken | None:
        return kept_token(self._data_dir)

    def _keep(self, opened: Opened) -> None:
        if not self._cluster_key.exists() or self._cluster_key.read_bytes() != opened.cluster_key:
            write_atomically(self._cluster_key, opened.cluster_key, mode=PRIVATE)
        self._keep_token(opened.token)
        newest = _Newest(opened.generation, _digest(opened.keys))
        if newest != self._newest:
            write_atomically(self._data_dir / _NEWEST, orjson.dumps(asdict(newest)), mode=PRIVATE)

    @property
    def _newest(self) -> _Newest | None:
        """The newest record that this server has read; None before the first read."""
        file = self._data_dir / _NEWEST
        return _Newest(**orjson.loads(file.read_bytes())) if file.exists() else None

    def _keep_token(self, token: JoinToken) -> None:
        if token != self._kept_token():
            write_atomically(self._data_dir / "join-token", f"{token.text}\n".encode(), mode=PRIVATE)


def kept_token(data_dir: Path) -> JoinToken | None:
    """Return the token of the data directory; None without a token. Raises JoinRefused."""
    file = data_dir / "join-token"
    return JoinToken.parse(file.read_text(encoding="utf-8").strip()) if file.exists() else None
