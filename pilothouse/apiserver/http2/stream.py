"""The stream interface of the dispatcher, implemented by serving and outbound."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.http2.frames import StreamFailure


class Stream(Protocol):
    """The local end of a request and its response."""

    id: int
    send_window: int
    receive_window: int
    expected: int | None
    """Remaining declared length of the body."""

    @property
    def headed(self) -> bool:
        """Return whether the head was received; a further field list is a trailer."""

    @property
    def ended(self) -> bool:
        """Return whether the peer's message is complete or absent."""

    def receive_data(self, data: bytes, padding: int) -> None:
        """Receive body bytes. Raises StreamFailure."""

    def receive_end(self) -> None:
        """Handle the end of the message."""

    def receive_reset(self, code: int) -> None:
        """Handle RST_STREAM."""

    def credit(self) -> None:
        """Handle a grown window."""

    def fail(self, failure: StreamFailure) -> None:
        """Reset the stream after a protocol violation."""
