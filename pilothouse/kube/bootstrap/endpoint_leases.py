"""Leases of server addresses: one key for each, which is gone when its server has not renewed it for a while."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.apiserver.storage.protobuf import ProtobufStore

RENEW_EVERY = 10
TTL = RENEW_EVERY + 5
"""Seconds. A server that is late by less is still alive."""


class EndpointLeases:
    """The keys are those of kube-apiserver, so that servers of both kinds on one etcd know of each other."""

    def __init__(self, store: Store, *, root: str = DEFAULT_ROOT, ttl: int = TTL) -> None:
        self._store = ProtobufStore(store)
        self._prefix = f"{root}/masterleases/"
        self._ttl = ttl

    async def list(self) -> list[str]:
        """The addresses of the servers that are alive, in order."""
        found = [orjson.loads(entry.value) for entry in (await self._store.list(self._prefix)).entries]
        return [lease["subsets"][0]["addresses"][0]["ip"] for lease in found if lease.get("subsets")]

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
        """Whether there was one."""
        entry = await self._store.get(self._prefix + ip)
        if entry is None:
            return False
        try:
            await self._store.delete(self._prefix + ip, expected=entry.modified)
        except KeyNotFound:
            return False
        return True
