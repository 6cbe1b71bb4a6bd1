"""HTTPS serving: certificates that may change while the server runs, and clients that may present their own.

New connections get the newest certificates that load; a pair that does not load is logged, and the old one stays.
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
    """kube-apiserver's flags for secure serving, by their names.

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
    """TLS for a `Server`, which listens on its `endpoint`. New connections get the newest certificates that load.

    >>> from pathlib import Path
    >>> from pilothouse.apiserver import KeyPair, SecureServing, SecureServingInfo, TlsFiles
    >>> try:
    ...     SecureServing(SecureServingInfo(TlsFiles(KeyPair(Path("missing.crt"), Path("missing.key")))))
    ... except OSError as error:
    ...     print(error.strerror)
    No such file or directory
    """

    def __init__(self, options: SecureServingInfo, *, poll_seconds: float = 5.0) -> None:
        """Raises OSError or ValueError where the options or files are not usable."""
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
        """Looks at the files first, if that is some time ago: only who connects needs to know of new ones."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._poll_seconds
            self.refresh()
        return self._contexts.for_address(local_address)

    def refresh(self) -> bool:
        """Loads the files again where they have changed. True when new connections get something new."""
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
