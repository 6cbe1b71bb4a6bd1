"""Who waits for each Settled, and says so in its status."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.bench.conditions import condition
from pilothouse.bench.served_kind import ServedKind
from pilothouse.bench.settling.rest import Rest
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.objects import Json

_QUIET_FOR: Final = "100ms"
_TIMEOUT: Final = "30s"


class SettledObjects:
    """Is an Owner."""

    kind: ServedKind

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._status: dict[str, Json] = {}

    async def hear(self, name: str, obj: Json | None) -> None:
        if obj is None:
            self._forget(name)
        elif not obj.get("status") and name not in self._waiting:
            self._waiting[name] = asyncio.create_task(self._wait(name, obj.get("spec") or {}), name=f"settled {name}")

    def revised(self, name: str, obj: Json) -> Json | None:
        return obj | {"status": status} if (status := self._status.get(name)) else None

    async def about_to_be_read(self) -> None:
        """Whatever has changed was said at once."""

    async def stop(self) -> None:
        for name in [*self._waiting]:
            self._forget(name)

    async def _wait(self, name: str, spec: Json) -> None:
        quiet_for, timeout = spec.get("quietFor") or _QUIET_FOR, spec.get("timeout") or _TIMEOUT
        left = await self._rest.come(quiet_for=parse_duration(quiet_for) / 1e9, timeout=parse_duration(timeout) / 1e9)
        reason, message = ("AtRest", "") if not left else ("StillWorking", f"after {timeout}: {', '.join(left)}")
        self._status[name] = {
            "settled": not left,
            **({"waitingFor": left[:64]} if left else {}),
            "conditions": [condition("Settled", not left, reason, message)],
        }
        self.kind.changed(name)

    def _forget(self, name: str) -> None:
        self._status.pop(name, None)
        if (task := self._waiting.pop(name, None)) is not None:
            task.cancel()
