"""HTTP/1.1 parser based on zttp.

zttp limits heads to 100 fields, 16 KiB per field and 64 KiB in total; net/http accepts 1 MiB. Longer heads are parsed
in Python with equal strictness. Their framing fields (lengths, codings, upgrades) still go to zttp as a short head, so
that a single parser determines the ends of bodies. Heads that zttp considers ambiguous take the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

import zttp

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http1.framing import (
    HEAD_END,
    BadMessage,
    Framing,
    MessageTooLarge,
    ParsedRequest,
    check_codings,
    parse_request,
)
from pilothouse.apiserver.http1.parser import (
    END,
    RequestEvent,
    RequestHead,
    ResponseEvent,
    ResponseHead,
    UnsendableRequest,
)

_FRAMING: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect", b"te", b"trailer"}
)


class ZttpRequestParser:
    def __init__(self, most_bytes: int) -> None:
        self._connection = zttp.Connection(zttp.SERVER)
        self._most_bytes = most_bytes
        self._head = bytearray()  # an incomplete head
        self._is_long = False  # too long for zttp: collected instead
        self._parsed: ParsedRequest | None = None  # the long head whose short form zttp parses
        self._in_body = False

    def receive(self, data: bytes) -> Sequence[RequestEvent]:
        if self._is_long:
            return self._collect(data)
        try:
            event: zttp.Event = self._connection.receive_event(data)
            events: list[RequestEvent] = []
            while event is not zttp.NEED_DATA:
                if isinstance(event, zttp.Request):
                    events.append(self._begin(event))
                elif isinstance(event, zttp.Data):
                    events.append(event.data)
                elif isinstance(event, zttp.EndOfMessage):
                    events.append(END)
                event = self._connection.next_event()
        except zttp.RemoteProtocolError as error:
            return self._look_again(str(error), data)
        if not self._in_body:
            self._head += data
        return events

    def _begin(self, event: zttp.Request) -> RequestHead:
        """Raises BadMessage."""
        self._head.clear()
        self._in_body = True
        parsed, self._parsed = self._parsed, None
        fields = cast("zttp.HeaderBlock", event.headers)  # always a HeaderBlock in HTTP/1.1
        return RequestHead(
            event.method.decode(),
            parsed.target if parsed else event.target,
            parsed.headers if parsed else fields.to_list(lowercase_names=True),
            "1.0" if event.http_version == b"1.0" else "1.1",
            None if event.end_stream else _body_framing(fields, event.http_version),
            not self._connection.should_close() and not (parsed and parsed.is_ambiguous),
            event.expect_continue,
        )

    def _look_again(self, reason: str, data: bytes) -> Sequence[RequestEvent]:
        """Collect heads that are too long or ambiguous for zttp. Raises BadMessage for all other errors."""
        if not self._in_body and self._parsed is None and ("size limit" in reason or "framing" in reason):
            self._is_long = True
            return self._collect(data)
        raise MessageTooLarge(reason) if "size limit" in reason else BadMessage(reason)

    def _collect(self, data: bytes) -> Sequence[RequestEvent]:
        self._head += data
        if len(self._head) > self._most_bytes + len(HEAD_END):
            raise MessageTooLarge("message exceeded configured size limit")
        if not self._head.endswith(HEAD_END):
            return ()
        parsed = self._parsed = parse_request(bytes(self._head), self._most_bytes)
        self._head.clear()
        self._is_long = False
        self._connection = zttp.Connection(zttp.SERVER)
        framing = b"".join(b"%b: %b\r\n" % field for field in parsed.headers if field[0] in _FRAMING)
        return self.receive(b"%b / HTTP/%b\r\n%b\r\n" % (parsed.method, parsed.version, framing))

    def next_request(self) -> None:
        self._connection.start_next_cycle()
        self._in_body = False

    def asks_upgrade(self) -> bool:
        return self._connection.upgrade() is not None


def _body_framing(headers: zttp.HeaderBlock, http_version: bytes) -> Framing:
    """Raises BadMessage."""
    if headers.get(b"transfer-encoding") is None:
        return Framing(int(headers.get(b"content-length", b"0")))
    check_codings(headers.getall(b"transfer-encoding"), http_version)
    return Framing()


class ZttpResponseParser:
    def __init__(self) -> None:
        self._connection = zttp.Connection(zttp.CLIENT)
        self._used = False

    def request(self, method: bytes, target: bytes, headers: Headers) -> bytes:
        if self._used:
            self._connection.start_next_cycle()
        self._used = True
        try:
            self._connection.send_request(method, target, b"1.1", headers)
        except zttp.LocalProtocolError as error:
            raise UnsendableRequest(str(error)) from None
        return self._connection.data_to_send()

    def data(self, data: bytes) -> bytes:
        self._connection.send_data(data)
        return self._connection.data_to_send()

    def end(self) -> bytes:
        self._connection.end_message()
        return self._connection.data_to_send()

    def receive(self, data: bytes) -> Iterator[ResponseEvent]:
        try:
            event: zttp.Event = self._connection.receive_event(data)
            while event is not zttp.NEED_DATA and event is not zttp.CONNECTION_CLOSED:
                if isinstance(event, zttp.Data):
                    yield event.data
                elif isinstance(event, zttp.EndOfMessage):
                    yield END
                elif isinstance(event, zttp.Response):
                    headers = cast("zttp.HeaderBlock", event.headers).to_list(lowercase_names=True)
                    yield ResponseHead(event.status_code, headers)
                event = self._connection.next_event()
        except zttp.RemoteProtocolError as error:
            raise BadMessage(str(error)) from None

    def should_close(self) -> bool:
        return self._connection.should_close()
