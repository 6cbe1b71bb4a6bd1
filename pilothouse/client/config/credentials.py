"""Credentials of requests (static, token file, exec plugin) and SSL contexts."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import field
from pathlib import Path
from typing import Protocol

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.exec_plugin import ExecPlugin
from pilothouse.client.config.model import ClientConfig, ConfigError, Credentials, TLSConfig
from pilothouse.machinery.dataclass import dataclass
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
