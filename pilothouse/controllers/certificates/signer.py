"""certificatesigningrequest-signing-controller: signs approved requests for the kubernetes.io signers.

The CA files are read for each certificate, so that a renewed CA takes effect at once.
"""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta
from pathlib import Path

from pilothouse.client.clock import Clock, utc_now
from pilothouse.client.events.event import timestamp
from pilothouse.controllers.certificates.authority import SIGNERS, SignerRefusal
from pilothouse.controllers.certificates.requests import (
    APPROVED,
    DENIED,
    FAILED,
    condition_types,
    parsed,
    run_on_requests,
    with_condition,
)
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CERTIFICATE_SIGNING_REQUESTS
from pilothouse.kinds.conditions import conditions_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_SHORTEST = timedelta(minutes=10)
_WORKERS = 5


async def run(context: ControllerContext) -> None:
    config = context.config
    if not config.cluster_signing_cert_file or not config.cluster_signing_key_file:
        return
    longest = timedelta(seconds=config.cluster_signing_duration)
    authority = _Authority(config.cluster_signing_cert_file, config.cluster_signing_key_file, longest, context.clock)
    requests = context.client.for_resource(CERTIFICATE_SIGNING_REQUESTS)

    async def handle(request: Json) -> None:
        types = condition_types(request)
        failed = any(
            condition["type"] == FAILED and condition.get("status") in (None, "", "True")
            for condition in conditions_of(request)
        )
        if not (
            APPROVED in types and DENIED not in types and not failed and request["spec"].get("signerName") in SIGNERS
        ):
            return
        try:
            signed = await authority.signed(request)
        except SignerRefusal as refusal:
            signed = with_condition(
                request,
                {
                    "type": FAILED,
                    "status": "True",
                    "reason": "SignerValidationFailure",
                    "message": str(refusal),
                    "lastUpdateTime": timestamp(context.clock.wall()),
                },
            )
        await requests.update_status(signed)

    await run_on_requests(context, "csrsigning", handle, workers=_WORKERS)


@dataclass(frozen=True, slots=True)
class _Authority:
    cert_file: Path
    key_file: Path
    longest: timedelta
    clock: Clock

    async def signed(self, request: Json) -> Json:
        """Return the request with its certificate. Raises SignerRefusal for permanent failures, OSError or
        ValueError."""
        spec = request["spec"]
        csr = await parsed(request)
        SIGNERS[spec["signerName"]](csr, spec.get("usages") or ())
        requested = spec.get("expirationSeconds")
        ttl = self.longest if requested is None else min(self.longest, max(_SHORTEST, timedelta(seconds=requested)))
        now = utc_now(self.clock)

        def sign() -> bytes:
            from pilothouse.controllers.certificates.authority import CertificateAuthority

            authority = CertificateAuthority.load(self.cert_file, self.key_file)
            return authority.sign(csr, usages=spec.get("usages") or (), ttl=ttl, now=now)

        certificate = base64.b64encode(await asyncio.to_thread(sign)).decode()
        return {**request, "status": {**(request.get("status") or {}), "certificate": certificate}}
