"""SSL contexts from PEM data or files. Keys touch the disk only while OpenSSL reads them, unreadable for others."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from pilothouse.client.config.model import ConfigError, Credentials, TLSConfig
from pilothouse.machinery.tls import verify_as_go


def ssl_context(tls: TLSConfig, credentials: Credentials) -> ssl.SSLContext:
    """Raises ConfigError when certificates or keys can not be read."""
    try:
        file = None if tls.ca_data or tls.ca_file is None else str(tls.ca_file)
        context = verify_as_go(ssl.create_default_context(cafile=file, cadata=tls.ca_data.decode() or None))
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_certificate(context, tls, credentials)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"can not load the TLS configuration: {error}") from error
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
