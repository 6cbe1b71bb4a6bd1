"""CertificateSigningRequests: state, parsing, and the common controller loop."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pilothouse.client.controller import Controller, enqueue_keys
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CERTIFICATE_SIGNING_REQUESTS
from pilothouse.kinds.conditions import conditions_of
from pilothouse.machinery.objects import Json, text

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"


async def run_on_requests(
    context: ControllerContext, name: str, handle: Callable[[Json], Awaitable[None]], *, workers: int = 1
) -> None:
    """Call `handle` for every request without a certificate, and again on each change."""
    queue = context.queue("certificate", str, first_delay=0.2)
    informer = context.informer(CERTIFICATE_SIGNING_REQUESTS)
    informer.add_event_handler(enqueue_keys(queue))

    async def sync(key: str) -> None:
        request = informer.indexer.get_by_key(key)
        if request is not None and not certificate_of(request):
            await handle(request)

    await Controller(name, sync, caches=(informer,), workers=workers, queue=queue, clock=context.clock).run()


def certificate_of(request: Json) -> str:
    return text(request, "status", "certificate")


def condition_types(request: Json) -> set[str]:
    return {condition["type"] for condition in conditions_of(request)}


def with_condition(request: Json, condition: Json) -> Json:
    return {**request, "status": {**(request.get("status") or {}), "conditions": [*conditions_of(request), condition]}}


async def parsed(request: Json) -> CertificateSigningRequest:
    """Return the parsed PKCS #10 request. Parsing is offloaded: the library is slow to load. Raises ValueError."""
    return await asyncio.to_thread(_parse, request["spec"]["request"])


def _parse(encoded: str) -> CertificateSigningRequest:
    from cryptography.x509 import load_pem_x509_csr

    return load_pem_x509_csr(base64.b64decode(encoded))
