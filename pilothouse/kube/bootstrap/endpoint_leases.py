"""Leases of server addresses: one key per server, which expires without renewal."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.apiserver.storage.protobuf import ProtobufStore

RENEW_EVERY = 10
TTL = RENEW_EVERY + 5
"""Seconds; longer than the renewal period."""


class EndpointLeases:
    """Uses kube-apiserver's keys, so that both implementations can share one etcd."""

    def __init__(self, store: Store, *, root: str = DEFAULT_ROOT, ttl: int = TTL) -> None:
        self._store = ProtobufStore(store)
        self._prefix = f"{root}/masterleases/"
        self._ttl = ttl

    async def list(self) -> list[str]:
        """Return the addresses of live servers, in order."""
        result = [orjson.loads(entry.value) for entry in (await self._store.list(self._prefix)).entries]
        return [lease["subsets"][0]["addresses"][0]["ip"] for lease in result if lease.get("subsets")]

    async def renew(self, ip: str) -> None:
        value = orjson.dumps(
            {"kind": "Endpoints", "apiVersion": "v1", "metadata": {}, "subsets": [{"addresses": [{"ip": ip}]}]}
        )
        while True:
            entry = await self._store.get(self._prefix + ip)
            try:
                if entry is None:
                    await self._store.create(self._prefix + ip, value, ttl=self._ttl)
                else:
                    await self._store.update(self._prefix + ip, value, expected=entry.modified, ttl=self._ttl)
            except (KeyExists, KeyNotFound, RevisionConflict):
                continue
            return

    async def remove(self, ip: str) -> bool:
        """Remove the lease of an address. Report whether the lease existed."""
        entry = await self._store.get(self._prefix + ip)
        if entry is None:
            return False
        try:
            await self._store.delete(self._prefix + ip, expected=entry.modified)
        except KeyNotFound:
            return False
        return True
