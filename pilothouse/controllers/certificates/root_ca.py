"""The current CA of the server's certificate. During a rotation, namespaces and secrets need both CAs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pilothouse.controllers.context import ControllerConfig

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 5.0


class RootCA:
    def __init__(self, config: ControllerConfig) -> None:
        self.pem = config.root_ca
        self._file = config.root_ca_file

    async def follow(self, changed: Callable[[], None], *, every: float = _LOOK_EVERY) -> None:
        """Call `changed` after each change of the file. Returns at once if the CA has no file."""
        while self._file is not None:
            await asyncio.sleep(every)
            if await asyncio.to_thread(self._reread, self._file):
                changed()

    def _reread(self, file: Path) -> bool:
        try:
            found = file.read_bytes()
        except OSError as error:
            log.error("the root CA can not be read, the old one stays: %s", error)
            return False
        if not found or found == self.pem:
            return False
        self.pem = found
        return True
