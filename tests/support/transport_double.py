"""A transport without a socket, for connections whose bytes a test gives and takes itself."""

from __future__ import annotations

import asyncio


class Pipe(asyncio.Transport):
    """Remembers what was written and whether it may be read from."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = self.paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close
