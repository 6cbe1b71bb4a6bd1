"""The ConfigMap that says since when the use of legacy service account tokens is tracked."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import Clock, is_date, system_clock

NAMESPACE, NAME = "kube-system", "kube-apiserver-legacy-service-account-token-tracking"
SINCE = "since"

_PERIOD = 60.0
_CREATE_AT_MOST_EVERY = timedelta(minutes=30)
"""A server that tracks nothing deletes the map; two that disagree shall not fight over it all the time."""


class LegacyTokenTracking:
    def __init__(self, config_maps: OwnAccess, *, clock: Clock = system_clock) -> None:
        self._config_maps = config_maps
        self._clock = clock
        self._created: datetime | None = None

    async def start(self, context: HookContext) -> None:
        sync = partial(try_once, self.sync, "error while syncing ConfigMap kube-system/" + NAME)
        await sync()
        context.spawn(repeat(sync, every=_PERIOD), name="legacy-token-tracking-controller")

    async def sync(self) -> None:
        """Raises StatusError."""
        found = await self._config_maps.get(NAME, namespace=NAMESPACE)
        if found is None:
            await self._create()
        elif not is_date((found.get("data") or {}).get(SINCE, "")):
            await self._config_maps.update(found, self._set_since)

    async def _create(self) -> None:
        if self._created is not None and abs(self._clock() - self._created) < _CREATE_AT_MOST_EVERY:
            return
        obj: Json = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": NAME, "namespace": NAMESPACE}}
        self._set_since(obj)
        await self._config_maps.ensure(obj)
        self._created = self._clock()

    def _set_since(self, config_map: Json) -> None:
        config_map["data"] = (config_map.get("data") or {}) | {SINCE: self._clock().date().isoformat()}
