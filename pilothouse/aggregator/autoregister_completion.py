"""The boot-sequence check `autoregister-completion`: the server's own APIServices have all been seen available."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.aggregator.apiservice.availability import AVAILABLE
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.machinery.conditions import is_true
from pilothouse.machinery.objects import Json, name_of


def autoregister_completion(wanted: Iterable[Json], api_services: APIServices) -> HealthCheck:
    """One that was available once counts, whatever becomes of it."""
    pending = set(map(name_of, wanted))

    def changed(seen: list[Json]) -> None:
        pending.difference_update(name_of(each) for each in seen if is_true(each, AVAILABLE))

    async def probe() -> None:
        if pending:
            raise Unhealthy(f"missing APIService: [{' '.join(sorted(pending))}]")

    api_services.listen(changed)
    return HealthCheck("autoregister-completion", probe, boot_sequence=True)
