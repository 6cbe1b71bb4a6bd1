"""The certificate by which other API servers know this one as their front proxy. A renewed one is used at once."""

from __future__ import annotations

import ssl
import time

from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.apiserver.serving.certificate_files import KeyPair


class ProxyClientCertificate:
    """`generation` grows when the files have changed; whoever made connections with an older one makes new ones."""

    def __init__(self, pair: KeyPair | None = None, *, poll_seconds: float = 5.0) -> None:
        self._pair = pair
        self._poll_seconds = poll_seconds
        self._next_look = time.monotonic() + poll_seconds
        self._watch = FileWatch((pair.cert_file, pair.key_file) if pair else ())
        self._generation = 0

    @property
    def generation(self) -> int:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._poll_seconds
            self._generation += self._watch.changed()
        return self._generation

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises OSError."""
        if self._pair is not None:
            context.load_cert_chain(self._pair.cert_file, self._pair.key_file)
