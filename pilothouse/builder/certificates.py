"""The serving certificate: given as files, or issued by the server's own CA, whose bundle goes into the APIService.

In a cluster a Secret holds the CA, so that all replicas share the CA; elsewhere the data directory holds it. A CA is
replaced a year before it expires, and whenever the Secret is replaced or deleted.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.extension_service import ExtensionService
from pilothouse.client.clock import REAL_CLOCK, Clock, utc_now
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controlplane.certificates.ensure import ServingNames
from pilothouse.controlplane.certificates.issue import Profile
from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate, rotate_authority
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.files import PRIVATE, PUBLIC, make_directory, write_atomically
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

log = logging.getLogger(__name__)

RENEW_EVERY = 12 * 3600.0
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


class ServingCertificate:
    """Serving certificate that is renewed before it expires. New connections use the new certificate."""

    def __init__(
        self,
        folder: Path,
        place: ExtensionService,
        addresses: frozenset[str] = frozenset(),
        *,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._shared: ResourceClient | None = None
        self._place = place
        self._names = ServingNames(frozenset((place.host, "localhost")), _LOOPBACK | addresses)
        self.pair = KeyPair(folder / "server.crt", folder / "server.key")

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.crt"

    @property
    def _ca_key(self) -> Path:
        return self._folder / "ca.key"

    @property
    def ca_bundle(self) -> str:
        """CA bundle, base64-encoded for an APIService."""
        return base64.b64encode(self.ca_file.read_bytes()).decode()

    def keep(self) -> None:
        """Create missing or expired files. Raises CertificateError, OSError."""
        make_directory(self._folder)
        name, now = f"{self._place.name}-ca", utc_now(self._clock)
        if self._shared is None:
            rotate_authority(name, self.ca_file, self._ca_key, now=now)
        ca, profile = keep_authority(name, self.ca_file, self._ca_key), Profile(self._place.name, names=self._names)
        keep_certificate(profile, ca, self.pair.cert_file, self.pair.key_file, now=now)

    async def share(self, client: Client) -> None:
        """Load the CA from the shared Secret, or create the Secret with a new CA. Raises StatusError."""
        self._shared = client.resource("v1", "secrets", namespace=self._place.namespace)
        await self._synchronise(self._shared)

    async def _synchronise(self, secrets: ResourceClient) -> None:
        """Load the CA from the Secret. A missing Secret is created, a CA that is due is replaced, by one replica."""
        name, now = f"{self._place.name}-ca", utc_now(self._clock)
        make_directory(self._folder)
        secret: Json
        while True:
            try:
                secret = await secrets.get(name)
            except NotFound:
                secret = {"metadata": {"name": name}}
            for file, mode in ((self.ca_file, PUBLIC), (self._ca_key, PRIVATE)):
                if data := (secret.get("data") or {}).get(file.name):
                    write_atomically(file, base64.b64decode(data), mode=mode)
                else:
                    file.unlink(missing_ok=True)
            if not rotate_authority(name, self.ca_file, self._ca_key, now=now):
                return
            files = (self.ca_file, self._ca_key)
            secret["data"] = {file.name: base64.b64encode(file.read_bytes()).decode() for file in files}
            try:
                await (secrets.update(secret) if "resourceVersion" in secret["metadata"] else secrets.create(secret))
                return
            except (AlreadyExists, Conflict):
                continue  # another replica was faster: load its CA

    async def renew(self, publish: Callable[[], Awaitable[None]]) -> None:
        """Renew CA and certificate until cancelled. `publish` publishes the CA after each renewal."""
        while True:
            await self._clock.sleep(RENEW_EVERY)
            await self.refresh()
            await publish()

    async def refresh(self) -> None:
        """Load the shared CA again, and issue a new certificate if CA or time require one. Failures are logged."""
        try:
            if self._shared is not None:
                await self._synchronise(self._shared)
            await asyncio.to_thread(self.keep)
        except (StatusError, ConnectionFailed, CertificateError, OSError) as error:
            log_failed_attempt(log, error, "cannot renew the certificate of %s", self._place.name)


async def keep_ca_bundle(client: Client, place: ExtensionService, bundle: str) -> None:
    """Set the caBundle of the server's APIServices. APIServices that the server may not change are logged and
    skipped.
    """
    services = client.resource("apiregistration.k8s.io/v1", "apiservices")
    for version in place.versions:
        name = f"{version}.{place.group}"
        try:
            api_service = await services.get(name)
            service = api_service["spec"].get("service") or {}
            if ((service.get("namespace"), service.get("name")) == (place.namespace, place.name)) and api_service[
                "spec"
            ].get("caBundle") != bundle:
                await services.patch(name, {"spec": {"caBundle": bundle, "insecureSkipTLSVerify": False}})
        except NotFound:
            continue
        except StatusError as error:
            log.warning("cannot update the caBundle of APIService %s: %s", name, error)
