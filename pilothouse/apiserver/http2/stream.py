"""The contract of a stream towards the dispatcher; serving and outbound have each their own."""

from __future__ import annotations

from typing import Protocol

from pilothouse.apiserver.http2.frames import StreamFailure


class Stream(Protocol):
    """Our end of one request and its answer."""

    id: int
    send_window: int
    receive_window: int
    expected: int | None
    """The rest of the declared length of the body, as far as it has not come yet."""

    @property
    def headed(self) -> bool:
        """The head has come: another field list has trailers."""

    @property
    def ended(self) -> bool:
        """The peer has sent its last, or never had anything to send."""

    def receive_data(self, data: bytes, padding: int) -> None:
        """Takes body bytes. Raises StreamFailure."""

    def receive_end(self) -> None:
        """Nothing more will come."""

    def receive_reset(self, code: int) -> None:
        """The peer ended the stream, in both directions."""

    def credit(self) -> None:
        """A window has grown."""

    def fail(self, failure: StreamFailure) -> None:
        """Resets the stream: the peer broke the protocol on it."""
