"""What the children of the supervisor tell it: that they are ready, or why they cannot be."""

from __future__ import annotations

import json
import os
from typing import Any


class StatusPipe:
    """One for all children. What one says is a line, written at once, so that lines are never mixed."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._rest = b""

    def fileno(self) -> int:
        return self._reading

    def say(self, **said: Any) -> None:
        os.write(self._writing, json.dumps(said).encode() + b"\n")

    def heard(self) -> list[dict[str, Any]]:
        """Return what was said since the last call."""
        try:
            while more := os.read(self._reading, 1 << 16):
                self._rest += more
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]
