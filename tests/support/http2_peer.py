"""A server that speaks HTTP/2 through the h2 package, and does on each event what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import h2.config
import h2.connection
import h2.events
import h2.settings
from patience import PATIENCE
from tls_backends import SERVER_NAME, Pki

from pilothouse.apiserver.outbound.pool import ConnectionPool
from pilothouse.apiserver.outbound.targets import Target

OK = [(":status", "200")]


@dataclass(eq=False)
class Conversation:
    """One connection of a client."""

    wire: h2.connection.H2Connection
    writer: asyncio.StreamWriter
    unsent: dict[int, bytes] = field(default_factory=dict)

    def respond(self, stream: int, body: bytes = b"", headers: list[tuple[str, str]] | None = None) -> None:
        self.wire.send_headers(stream, headers or OK)
        self.unsent[stream] = body
        self.send_on()

    def send_on(self) -> None:
        """What the windows of the client allow; the end of a stream follows its last byte."""
        for stream, body in list(self.unsent.items()):
            while room := min(
                len(body), self.wire.local_flow_control_window(stream), self.wire.max_outbound_frame_size
            ):
                self.wire.send_data(stream, body[:room])
                body = body[room:]
            self.unsent[stream] = body
            if not body:
                self.wire.end_stream(stream)
                del self.unsent[stream]

    def _room(self, stream: int) -> int:
        return min(self.wire.local_flow_control_window(stream), self.wire.max_outbound_frame_size)

    def flush(self) -> None:
        self.writer.write(self.wire.data_to_send())


Behave: TypeAlias = Callable[[Conversation, Any], None]


@dataclass
class Http2Peer:
    behave: Behave
    settings: dict[h2.settings.SettingCodes, int] = field(default_factory=dict)
    conversations: list[Conversation] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    refusing: bool = False  # new connections are closed at once
    tasks: list[asyncio.Task[Any] | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.current_task())
        wire = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        wire.local_settings = h2.settings.Settings(client=False, initial_values=self.settings)
        wire.max_inbound_frame_size = wire.local_settings.max_frame_size
        wire.initiate_connection()
        conversation = Conversation(wire, writer)
        self.conversations.append(conversation)
        conversation.flush()
        if self.refusing:
            writer.transport.abort()
        try:
            while data := await reader.read(1 << 16):
                for event in wire.receive_data(data):
                    self._note(conversation, event)
                conversation.flush()
        except OSError:
            pass
        finally:
            writer.close()

    def _note(self, conversation: Conversation, event: Any) -> None:
        self.events.append(event)
        self.changed.set()
        if isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            conversation.send_on()
        self.behave(conversation, event)

    async def until(self, kind: type[Any]) -> Any:
        """The first event of this kind."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = next((event for event in self.events if isinstance(event, kind)), None)
                if found is not None:
                    return found
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Peers:
    """What is needed to serve and to be reached; made once, for certificates take their time."""

    serving: ssl.SSLContext
    asking: ssl.SSLContext

    @classmethod
    def make(cls, folder: Path) -> Peers:
        pki = Pki.make(folder)
        pair = pki.server(SERVER_NAME)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(pair.cert_file, pair.key_file)
        asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        asking.load_verify_locations(pki.ca_file)
        for context in (serving, asking):
            context.set_alpn_protocols(["h2"])
        return cls(serving, asking)

    @asynccontextmanager
    async def running(self, behave: Behave, **settings: int) -> AsyncIterator[tuple[Http2Peer, ConnectionPool, Target]]:
        peer = Http2Peer(behave, {h2.settings.SettingCodes[name]: value for name, value in settings.items()})
        server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=self.serving)
        pool = ConnectionPool(self.asking, SERVER_NAME)
        try:
            yield peer, pool, Target("127.0.0.1", server.sockets[0].getsockname()[1], "/", tls=self.asking)
        finally:
            pool.close()
            for conversation in peer.conversations:
                conversation.writer.transport.abort()
            server.close()
            await asyncio.gather(*filter(None, peer.tasks), return_exceptions=True)
