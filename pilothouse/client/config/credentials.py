"""Credentials of requests (static, token file, exec plugin) and SSL contexts.

An exec plugin is a program that prints an ExecCredential (client.authentication.k8s.io). The program runs when
credentials are first needed, after they expired, and after the server rejected them. Concurrent requests wait for the
same run.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import orjson

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.model import ClientConfig, ConfigError, Credentials, ExecConfig, TLSConfig
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.tls import verify_as_go

TOKEN_FILE_PERIOD = 60.0


class CredentialSource(Protocol):
    async def get(self) -> Credentials: ...

    def rejected(self, credentials: Credentials) -> None:
        """Invalidate credentials that the server rejected with 401."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    credentials: Credentials

    async def get(self) -> Credentials:
        return self.credentials

    def rejected(self, credentials: Credentials) -> None:
        return


@dataclass(slots=True)
class TokenFile:
    """Token that another process keeps fresh, such as a projected service account token. An unreadable file is
    ignored."""

    path: Path
    clock: Clock = REAL_CLOCK
    _cached: Credentials | None = None
    _read_at: float = field(default=0.0)

    async def get(self) -> Credentials:
        if self._cached is None or self.clock.now() - self._read_at >= TOKEN_FILE_PERIOD:
            self._cached = self._read()
            self._read_at = self.clock.now()
        return self._cached

    def rejected(self, credentials: Credentials) -> None:
        if credentials == self._cached:
            self._read_at = float("-inf")

    def _read(self) -> Credentials:
        try:
            token = self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            token = ""
            reason = str(error)
        else:
            reason = f"{self.path} is empty"
        if token:
            return Credentials(token=token)
        if self._cached is None:
            raise ConfigError(f"failed to read the token file: {reason}")
        return self._cached


def credential_source(config: ClientConfig, clock: Clock = REAL_CLOCK) -> CredentialSource:
    """Return the credential source. Precedence as upstream: token file, static token, exec plugin."""
    if config.token_file is not None:
        return TokenFile(config.token_file, clock)
    if config.exec is not None and not config.token and not config.username:
        return ExecPlugin(config.exec, clock)
    return StaticCredentials(Credentials(token=config.token))


def ssl_context(tls: TLSConfig, credentials: Credentials) -> ssl.SSLContext:
    """Return an SSL context. Private keys are on disk only while OpenSSL reads them, with mode 0600.

    Raises ConfigError if certificates or keys cannot be loaded.
    """
    try:
        file = None if tls.ca_data or tls.ca_file is None else str(tls.ca_file)
        context = verify_as_go(ssl.create_default_context(cafile=file, cadata=tls.ca_data.decode() or None))
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_certificate(context, tls, credentials)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot load the TLS configuration: {error}") from error
    return context


def _load_certificate(context: ssl.SSLContext, tls: TLSConfig, credentials: Credentials) -> None:
    certificate = credentials.cert_data or tls.cert_data or _read(tls.cert_file)
    key = credentials.key_data or tls.key_data or _read(tls.key_file)
    if bool(certificate) != bool(key):
        raise ConfigError("a client certificate needs a key, and a key needs a certificate")
    if certificate:
        with tempfile.NamedTemporaryFile() as file:  # mode 0600
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)


def _read(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None else b""


API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecPlugin:
    def __init__(self, config: ExecConfig, clock: Clock = REAL_CLOCK) -> None:
        if config.api_version not in API_VERSIONS:
            raise ConfigError(f"exec plugin: invalid apiVersion {config.api_version!r}")
        self._config = config
        self._clock = clock
        self._lock = asyncio.Lock()
        self._cached: Credentials | None = None
        self._expires = float("inf")

    async def get(self) -> Credentials:
        async with self._lock:
            if self._cached is None or self._clock.wall() >= self._expires:
                self._cached = self._credentials(await self._run())
            return self._cached

    def rejected(self, credentials: Credentials) -> None:
        if credentials == self._cached:
            self._cached = None

    async def _run(self) -> bytes:
        interactive = self._interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._config.command,
                *self._config.args,
                env=os.environ | dict(self._config.env) | {"KUBERNETES_EXEC_INFO": self._exec_info(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError:
            hint = f"\n\n{self._config.install_hint}" if self._config.install_hint else ""
            raise ConfigError(f"exec: executable {self._config.command} not found{hint}") from None
        except OSError as error:
            raise ConfigError(f"exec: {error}") from error
        output, _ = await process.communicate()
        if process.returncode:
            raise ConfigError(f"exec: executable {self._config.command} failed with exit code {process.returncode}")
        return output

    def _interactive(self) -> bool:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        match self._config.interactive_mode:
            case "Never":
                return False
            case "IfAvailable":
                return terminal
            case "Always" if terminal:
                return True
            case "Always":
                raise ConfigError("exec plugin cannot support interactive mode: standard input is not a terminal")
            case mode:
                raise ConfigError(f"exec plugin: unknown interactiveMode: {mode!r}")

    def _exec_info(self, interactive: bool) -> str:
        spec: Json = {"interactive": interactive}
        if self._config.cluster is not None:
            spec["cluster"] = self._config.cluster
        info = {"kind": "ExecCredential", "apiVersion": self._config.api_version, "spec": spec}
        return orjson.dumps(info).decode()

    def _credentials(self, output: bytes) -> Credentials:
        try:
            credential = orjson.loads(output)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"exec plugin: decoding stdout: {error}") from error
        version = credential.get("apiVersion") if isinstance(credential, dict) else None
        if version != self._config.api_version:
            expected = self._config.api_version
            raise ConfigError(f"exec plugin is configured to use API version {expected}, plugin returned {version}")
        status = credential.get("status")
        if not isinstance(status, dict):
            raise ConfigError("exec plugin didn't return a status field")
        certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
        token = status.get("token") or ""
        if not token and not certificate and not key:
            raise ConfigError("exec plugin didn't return a token or cert/key pair")
        if bool(certificate) != bool(key):
            raise ConfigError("exec plugin returned only certificate or key, not both")
        expires = status.get("expirationTimestamp")
        self._expires = datetime.fromisoformat(expires).timestamp() if expires else float("inf")
        return Credentials(token=token, cert_data=certificate.encode(), key_data=key.encode())
