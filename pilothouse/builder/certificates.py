"""The serving certificate: given as files, or made by a CA of the server's own, which the APIService is told of.

In a cluster the CA lives in a Secret, so that all replicas have the same; elsewhere in the data directory.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.builder.place import Place
from pilothouse.client.rest.client import Client
from pilothouse.controlplane.certificates.issue import Profile
from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate
from pilothouse.controlplane.certificates.names import ServingNames
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.whole_files import PRIVATE, PUBLIC, make_directory, write_atomically

log = logging.getLogger(__name__)

RENEW_EVERY = 12 * 3600.0
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


class ServingCertificate:
    """One that is renewed in time, from a CA that is kept. New connections get the new one."""

    def __init__(self, folder: Path, place: Place, addresses: frozenset[str] = frozenset()) -> None:
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
        """As an APIService has it."""
        return base64.b64encode(self.ca_file.read_bytes()).decode()

    def keep(self) -> None:
        """Make what is missing or old. Raises CertificateError, OSError."""
        make_directory(self._folder)
        ca = keep_authority(f"{self._place.name}-ca", self.ca_file, self._ca_key)
        keep_certificate(Profile(self._place.name, names=self._names), ca, self.pair.cert_file, self.pair.key_file)

    async def share(self, client: Client) -> None:
        """Take the CA of the other replicas, or give them ours. Raises StatusError."""
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

    async def renew(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Keep it until cancelled, and `tell` who must know its CA."""
        while True:
            await asyncio.sleep(RENEW_EVERY)
            await asyncio.to_thread(self.keep)
            await tell()


async def keep_ca_bundle(client: Client, place: Place, bundle: str) -> None:
    """Tell the APIServices that lead here which CA to trust; those that it may not change are left, and logged."""
    services = client.resource("apiregistration.k8s.io/v1", "apiservices")
    for version in place.versions:
        name = f"{version}.{place.group}"
        try:
            found = await services.get(name)
            service = found["spec"].get("service") or {}
            if ((service.get("namespace"), service.get("name")) == (place.namespace, place.name)) and found["spec"].get(
                "caBundle"
            ) != bundle:
                await services.patch(name, {"spec": {"caBundle": bundle, "insecureSkipTLSVerify": False}})
        except NotFound:
            continue
        except StatusError as error:
            log.warning("cannot keep the caBundle of APIService %s right: %s", name, error)
