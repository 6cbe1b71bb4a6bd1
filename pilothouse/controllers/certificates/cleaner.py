"""certificatesigningrequest-cleaner-controller: deletes completed, denied, failed or stale requests."""

from __future__ import annotations

import asyncio
import base64
import logging
from datetime import datetime, timedelta

from pilothouse.client.clock import utc_now
from pilothouse.client.wait import until
from pilothouse.controllers.certificates.requests import APPROVED, DENIED, FAILED, certificate_of
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CERTIFICATE_SIGNING_REQUESTS
from pilothouse.kinds.conditions import conditions_of
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import parse_time

logger = logging.getLogger(__name__)

POLLING_INTERVAL = 3600.0
APPROVED_EXPIRATION = timedelta(hours=1)
DENIED_EXPIRATION = timedelta(hours=1)
PENDING_EXPIRATION = timedelta(hours=24)


async def run(context: ControllerContext) -> None:
    informer = context.informer(CERTIFICATE_SIGNING_REQUESTS)
    requests = context.client.for_resource(CERTIFICATE_SIGNING_REQUESTS)

    async def clean() -> None:
        now = utc_now(context.clock)
        for request in informer.indexer.list():
            reason = outlived(request, now) or await _expired(request, now)
            if reason:
                logger.info("Cleaning CSR %s as %s.", name_of(request), reason)
                try:
                    await requests.delete(name_of(request))
                except NotFound:
                    continue
                except StatusError as error:
                    logger.error("Error while attempting to clean CSR %s: %s", name_of(request), error)

    await informer.wait_synced()
    await until(clean, POLLING_INTERVAL, clock=context.clock)


def outlived(request: Json, now: datetime) -> str:
    """Return the reason to delete the request according to its conditions; empty to keep it."""
    if not conditions_of(request):
        old = _is_older(metadata(request).get("creationTimestamp"), PENDING_EXPIRATION, now)
        return "it is more than pendingExpiration duration old and unhandled" if old else ""
    issued = bool(certificate_of(request))
    for condition in conditions_of(request):
        since, type_ = condition.get("lastUpdateTime"), condition["type"]
        if type_ in (DENIED, FAILED) and _is_older(since, DENIED_EXPIRATION, now):
            return f"it is more than deniedExpiration duration old and {type_.lower()}"
        if type_ == APPROVED and issued and _is_older(since, APPROVED_EXPIRATION, now):
            return "it is more than approvedExpiration duration old and approved"
        if type_ == APPROVED and not issued and _is_older(since, PENDING_EXPIRATION, now):
            return "it is approved but unissued for more than pendingExpiration duration"
    return ""


async def _expired(request: Json, now: datetime) -> str:
    approved = any(condition["type"] == APPROVED for condition in conditions_of(request))
    if not approved or not certificate_of(request):
        return ""
    end = await asyncio.to_thread(_not_after, certificate_of(request))
    return "the associated certificate is expired" if end is not None and now > end else ""


def _not_after(encoded: str) -> datetime | None:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(base64.b64decode(encoded)).not_valid_after_utc
    except ValueError:
        return None


def _is_older(time: str | None, age: timedelta, now: datetime) -> bool:
    moment = parse_time(time) if time else None
    return moment is not None and now - moment > age
