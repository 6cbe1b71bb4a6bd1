"""The CAs in some files, as the chains of certificates name them. Changed files are read again."""

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
"""CA certificates, DER, that are trusted at the moment."""

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class AuthorityFiles:
    """Looks at the files when it is asked, if the last look is some time ago. What does not load changes nothing."""

    def __init__(self, files: Iterable[Path], *, poll_seconds: float = 5.0) -> None:
        """Raises OSError, ValueError."""
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
    """DER. Raises ValueError for what is no certificate."""
    return [ssl.PEM_cert_to_DER_cert(block) for block in _BLOCK.findall(bundle)]
