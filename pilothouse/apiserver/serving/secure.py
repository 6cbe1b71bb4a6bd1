"""HTTPS serving with reloadable certificates and optional client certificates.

New connections use the newest valid certificates. Invalid files are logged, and the previous certificates stay.
"""

from __future__ import annotations

import logging
import ssl
import time

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.apiserver.serving.server import ListenEndpoint
from pilothouse.apiserver.serving.tls_context import ServingContexts, TlsFiles
from pilothouse.apiserver.serving.tls_options import PREFERRED_NAMES, tls_options
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SecureServingInfo:
    """kube-apiserver's secure serving flags, by name.

    >>> from pathlib import Path
    >>> from pilothouse.apiserver import KeyPair, SecureServingInfo, TlsFiles
    >>> SecureServingInfo(TlsFiles(KeyPair(Path("server.crt"), Path("server.key"))), "127.0.0.1").secure_port
    6443
    """

    files: TlsFiles
    bind_address: str = "0.0.0.0"
    secure_port: int = 6443
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    disable_http2_serving: bool = False
    permit_port_sharing: bool = False


class SecureServing:
    """TLS for a `Server`, which listens on `endpoint`. New connections use the newest valid certificates.

    >>> from pathlib import Path
    >>> from pilothouse.apiserver import KeyPair, SecureServing, SecureServingInfo, TlsFiles
    >>> try:
    ...     SecureServing(SecureServingInfo(TlsFiles(KeyPair(Path("missing.crt"), Path("missing.key")))))
    ... except OSError as error:
    ...     print(error.strerror)
    No such file or directory
    """

    def __init__(self, options: SecureServingInfo, *, poll_seconds: float = 5.0) -> None:
        """Load the files. Raises OSError or ValueError for unusable options or files."""
        self._options = options
        self._poll_seconds = poll_seconds
        self._next_look = time.monotonic() + poll_seconds
        self._tls = tls_options(options.tls_min_version, options.tls_cipher_suites)
        self._watch = FileWatch(options.files.paths)
        self._contexts = self._load()
        for suite in options.tls_cipher_suites:
            if suite not in PREFERRED_NAMES:
                log.warning("Use of insecure cipher '%s' detected.", suite)

    @property
    def endpoint(self) -> ListenEndpoint:
        return ListenEndpoint(
            self._options.bind_address,
            self._options.secure_port,
            tls=self._context,
            reuse_port=self._options.permit_port_sharing,
        )

    def _context(self, local_address: str) -> ssl.SSLContext:
        """Return the context, after a rate-limited check for changed files."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._poll_seconds
            self.refresh()
        return self._contexts.for_address(local_address)

    def refresh(self) -> bool:
        """Reload changed files. Returns whether new connections use a new configuration."""
        if not self._watch.changed():
            return False
        try:
            self._contexts = self._load()
        except (OSError, ValueError) as error:
            log.error("The new serving certificates cannot be used, the old ones stay: %s", error)
            return False
        log.info("Loaded new serving certificates.")
        return True

    def _load(self) -> ServingContexts:
        alpn = ("http/1.1",) if self._options.disable_http2_serving else ("h2", "http/1.1")
        return ServingContexts(self._options.files, self._tls, alpn)
