"""Trusted CA certificates from files, reloaded after changes."""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from pilothouse.apiserver.file_watch import FileWatch

log = logging.getLogger(__name__)

Authorities: TypeAlias = Callable[[], frozenset[bytes]]
"""Return the CA certificates (DER) in force."""

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class AuthorityFiles:
    """Polls the files on use, at most once per interval. Invalid files leave the certificates unchanged."""

    def __init__(self, files: Iterable[Path], *, poll_seconds: float = 5.0) -> None:
        """Load the files. Raises OSError or ValueError."""
        self._files = tuple(files)
        self._poll_seconds = poll_seconds
        self._next_look = time.monotonic() + poll_seconds
        self._watch = FileWatch(self._files)
        self._loaded = self._load()

    def __call__(self) -> frozenset[bytes]:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._poll_seconds
            self._refresh()
        return self._loaded

    def _refresh(self) -> None:
        if not self._watch.changed():
            return
        try:
            self._loaded = self._load()
        except (OSError, ValueError) as error:
            log.error("The new client CAs cannot be used, the old ones stay: %s", error)

    def _load(self) -> frozenset[bytes]:
        return frozenset(
            certificate for file in self._files for certificate in certificates_in(file.read_text(encoding="utf-8"))
        )


def certificates_in(bundle: str) -> list[bytes]:
    """Return the certificates of a PEM bundle as DER. Raises ValueError for an invalid certificate."""
    return [ssl.PEM_cert_to_DER_cert(block) for block in _BLOCK.findall(bundle)]
