"""The serving certificate: given as files, or issued by the server's own CA, whose bundle goes into the APIService.

In a cluster a Secret holds the CA, so that all replicas share the CA; elsewhere the data directory holds it. A CA is
replaced a year before it expires, and whenever the Secret is replaced or deleted. A process that has not loaded
`cryptography` can issue in a child process, and saves the 10 MB of the library.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import orjson

from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.extension_service import ExtensionService
from pilothouse.client.clock import REAL_CLOCK, Clock, utc_now
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controlplane.certificates.paths import CertificateError
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.files import PRIVATE, PUBLIC, make_directory, write_atomically
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

log = logging.getLogger(__name__)

RENEW_EVERY = 12 * 3600.0
_CHILD = "from pilothouse.builder.certificates import issue_as_child; issue_as_child()"
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


class ServingCertificate:
    """Serving certificate that is renewed before it expires. New connections use the new certificate."""

    def __init__(
        self,
        folder: Path,
        place: ExtensionService,
        addresses: frozenset[str] = frozenset(),
        *,
        in_child: bool = False,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """With `in_child`, a child process issues, unless this process has loaded `cryptography` already."""
        self._folder = folder
        self._in_child = in_child
        self._clock = clock
        self._checked: dict[tuple[bool, bool], tuple[datetime, list[bytes]]] = {}  # steps → time, files after them
        self._refreshing = asyncio.Lock()  # a refresh never reads files that another one is replacing
        self._shared: ResourceClient | None = None
        self._place = place
        self._addresses = _LOOPBACK | addresses
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
        self._issue(rotate=self._shared is None, certify=True)

    def _issue(self, *, rotate: bool, certify: bool) -> bool:
        """Call `issue_files`. No-op for files that were checked recently and have not changed since."""
        make_directory(self._folder)
        now, steps = utc_now(self._clock), (rotate, certify)
        moment, files = self._checked.get(steps, (datetime.min, []))
        if files == self._files(certify) and (now - moment).total_seconds() < RENEW_EVERY / 2:
            return False
        task: Json = {
            "folder": str(self._folder),
            "name": self._place.name,
            "dns": [self._place.host, "localhost"],
            "ips": sorted(self._addresses),
            "now": now.isoformat(),
            "rotate": rotate,
            "certify": certify,
        }
        in_child = self._in_child and sys.executable and "cryptography.x509" not in sys.modules
        rotated = issue_in_child(task) if in_child else issue_files(**task)
        self._checked[steps] = (now, self._files(certify))
        return rotated

    def _files(self, certify: bool) -> list[bytes]:
        """Return the content of the files that `issue_files` reads."""
        files = (self.ca_file, self._ca_key, *((self.pair.cert_file, self.pair.key_file) if certify else ()))
        return [file.read_bytes() if file.exists() else b"" for file in files]

    async def share(self, client: Client) -> None:
        """Load the CA from the shared Secret, or create the Secret with a new CA. Raises StatusError."""
        self._shared = client.resource("v1", "secrets", namespace=self._place.namespace)
        await self._synchronise(self._shared)

    async def _synchronise(self, secrets: ResourceClient) -> None:
        """Load the CA from the Secret. A missing Secret is created, a CA that is due is replaced, by one replica."""
        name = f"{self._place.name}-ca"
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
            if not await asyncio.to_thread(self._issue, rotate=True, certify=False):
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
            async with self._refreshing:
                if self._shared is not None:
                    await self._synchronise(self._shared)
                await asyncio.to_thread(self.keep)
        except (StatusError, ConnectionFailed, CertificateError, OSError) as error:
            log_failed_attempt(log, error, "cannot renew the certificate of %s", self._place.name)


def issue_files(
    folder: str, name: str, *, dns: list[str], ips: list[str], now: str, rotate: bool, certify: bool
) -> bool:
    """Replace a CA that is due (`rotate`), and keep a CA with its certificate (`certify`), in a folder.

    Reports whether the CA was replaced. Raises CertificateError, OSError.
    """
    from pilothouse.controlplane.certificates.ensure import ServingNames
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate, rotate_authority

    time, authority = datetime.fromisoformat(now), f"{name}-ca"
    ca_file, ca_key = Path(folder, "ca.crt"), Path(folder, "ca.key")
    rotated = rotate and rotate_authority(authority, ca_file, ca_key, now=time)
    if certify:
        profile = Profile(name, names=ServingNames(frozenset(dns), frozenset(ips)))
        ca = keep_authority(authority, ca_file, ca_key)
        keep_certificate(profile, ca, Path(folder, "server.crt"), Path(folder, "server.key"), now=time)
    return rotated


def issue_in_child(task: Json) -> bool:
    """Call `issue_files` in a child process. Raises CertificateError, also for a child that cannot run."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=orjson.dumps(task), capture_output=True, env=environment, check=False
    )
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        raise CertificateError(lines[-1] if lines else f"the child process ended with {child.returncode}")
    return bool(orjson.loads(child.stdout))


def issue_as_child() -> None:
    """Read the arguments of `issue_files` from stdin, and write its result to stdout."""
    try:
        rotated = issue_files(**orjson.loads(sys.stdin.buffer.read()))
    except (CertificateError, OSError) as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(orjson.dumps(rotated))


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
