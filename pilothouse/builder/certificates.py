"""The serving certificate: given as files, or issued by the server's own CA, whose bundle goes into the APIService.

In a cluster a Secret holds the CA, so that all replicas share the CA; elsewhere the data directory holds it.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.extension_service import ExtensionService
from pilothouse.client.rest.client import Client
from pilothouse.controlplane.certificates.ensure import ServingNames
from pilothouse.controlplane.certificates.issue import Profile
from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.files import PRIVATE, PUBLIC, make_directory, write_atomically
from pilothouse.machinery.status_error import StatusError

log = logging.getLogger(__name__)

RENEW_EVERY = 12 * 3600.0
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


class ServingCertificate:
    """Serving certificate that is renewed before it expires. New connections use the new certificate."""

    def __init__(self, folder: Path, place: ExtensionService, addresses: frozenset[str] = frozenset()) -> None:
        self._folder = folder
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
        ca = keep_authority(f"{self._place.name}-ca", self.ca_file, self._ca_key)
        keep_certificate(Profile(self._place.name, names=self._names), ca, self.pair.cert_file, self.pair.key_file)

    async def share(self, client: Client) -> None:
        """Load the CA from the shared Secret, or create the Secret with a new CA. Raises StatusError."""
        secrets = client.resource("v1", "secrets", namespace=self._place.namespace)
        name = f"{self._place.name}-ca"
        try:
            secret = await secrets.get(name)
        except NotFound:
            self.keep()
            files = (self.ca_file, self._ca_key)
            authority = {file.name: base64.b64encode(file.read_bytes()).decode() for file in files}
            try:
                secret = await secrets.create({"metadata": {"name": name}, "data": authority})
            except AlreadyExists:
                secret = await secrets.get(name)
        make_directory(self._folder)
        for file, mode in ((self.ca_file, PUBLIC), (self._ca_key, PRIVATE)):
            write_atomically(file, base64.b64decode(secret["data"][file.name]), mode=mode)

    async def renew(self, publish: Callable[[], Awaitable[None]]) -> None:
        """Renew the certificate until cancelled. `tell` publishes the CA after each renewal."""
        while True:
            await asyncio.sleep(RENEW_EVERY)
            await asyncio.to_thread(self.keep)
            await publish()


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
