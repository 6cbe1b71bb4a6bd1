"""Writer of the Available condition; skips writes that change nothing."""

from __future__ import annotations

import logging
from contextlib import suppress
from copy import deepcopy

from pilothouse.aggregator.apiservice.strategy import API_SERVICES, AVAILABLE, GROUP_VERSION
from pilothouse.aggregator.availability.metrics import count_unavailable, note_availability
from pilothouse.client.rest.client import Client
from pilothouse.kinds.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of

_log = logging.getLogger(__name__)


class AvailabilityStatus:
    def __init__(self, client: Client) -> None:
        self._client = client.for_resource(GROUP_VERSION.resource(API_SERVICES.names.plural))

    async def put(self, api_service: Json, condition: Condition) -> None:
        """Write the condition. Raises StatusError. A conflict needs no retry: the concurrent change requeues the
        APIService."""
        name, available = name_of(api_service), condition.status == "True"
        note_availability(name, available=available)
        if condition.is_same_as(find_condition(api_service, AVAILABLE)):
            return
        changed = deepcopy(api_service)
        set_condition(changed, condition)
        with suppress(Conflict, NotFound):
            await self._client.update_status(changed)
            _log.info("APIService %s: available %s (%s)", name, condition.status, condition.reason)
            if is_true(api_service, AVAILABLE) and not available:
                count_unavailable(name, condition.reason)
