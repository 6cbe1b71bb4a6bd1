"""Webhooks behind the Service `kubernetes` are served by this server, mostly for one that it aggregates.

They are asked in this process and as the server itself, who may ask anybody.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from pilothouse.apiserver.admission.webhook.calling import WebhookClient
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED
from pilothouse.apiserver.webhook.failures import WebhookCallFailed
from pilothouse.client.clock import REAL_CLOCK, done_within
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_SERVICE = ("default", "kubernetes", 443)
_HOST = ("kubernetes.default.svc", 443)


@dataclass(frozen=True, slots=True)
class OwnWebhooks:
    client: Client
    others: WebhookClient

    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        path = _own_path(config)
        if path is None:
            return await self.others.post(config, body, timeout=timeout)
        over = asyncio.get_running_loop().time() + timeout
        asked = self.client.request("POST", path, params={"timeout": f"{timeout:g}s"}, body=body)
        # A task of its own, as a request over a socket has: both have limits, which cancel the task that they are in.
        asking = asyncio.ensure_future(asked)
        try:
            if not await done_within(timeout, asking, REAL_CLOCK):
                raise WebhookCallFailed(DEADLINE_EXCEEDED)
            return asking.result()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            if asyncio.get_running_loop().time() >= over:  # then the answer only says so, in whatever words
                raise WebhookCallFailed(DEADLINE_EXCEEDED) from None
            status = error if isinstance(error, StatusError) else None
            raise WebhookCallFailed(str(error) if status is None else status.message, status=status) from None


def _own_path(config: Json) -> str | None:
    """Return the path on this server; None for a webhook that is somebody else's."""
    if service := config.get("service"):
        named = (service["namespace"], service["name"], service.get("port") or 443)
        return f"/{(service.get('path') or '').lstrip('/')}" if named == _SERVICE else None
    url = urlsplit(config.get("url") or "")
    return url.path or "/" if (url.hostname, url.port or 443) == _HOST else None
