"""Bodies that a handler reads as they come: the client is held back while it does not."""

from __future__ import annotations

import asyncio

from serving_harness import Http1Client, Http2Client, client_context, eventually, secure_options, serving

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.exchange import AHEAD, ClientGone
from pilothouse.controlplane.certificates.paths import CertificatePaths

BODY = bytes(range(256)) * 10_000


class Reader:
    """Counts what came, one step at a time where `steps` is given."""

    def __init__(self, steps: asyncio.Semaphore | None = None) -> None:
        self.received = bytearray()
        self.gone = False
        self._steps = steps

    async def __call__(self, request: Request) -> Response:
        assert request.stream_body is not None
        try:
            async for chunk in request.stream_body():
                if self._steps is not None:
                    await self._steps.acquire()
                self.received += chunk
        except ClientGone:
            self.gone = True
            raise
        return Response(200, b"%d" % len(self.received))


async def test_an_http1_body_arrives_whole(pki: CertificatePaths) -> None:
    reader = Reader()
    async with serving(reader, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/", "POST", body=BODY)
        assert (await client.answer()).body == b"%d" % len(BODY)
        assert reader.received == BODY
        client.ask("/", "POST", body=b"again")
        assert (await client.answer()).body == b"%d" % (len(BODY) + 5)
        client.close()


async def test_an_http2_body_arrives_whole_within_the_windows(pki: CertificatePaths) -> None:
    reader = Reader()
    async with serving(reader, secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        upload = _Upload(client, BODY)
        await upload.run()
        assert (await client.answer(upload.stream)).body == b"%d" % len(BODY)
        assert reader.received == BODY
        client.close()


async def test_an_http2_client_is_held_back_while_nobody_reads(pki: CertificatePaths) -> None:
    async with serving(Reader(asyncio.Semaphore(0)), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"))
        upload = _Upload(client, bytes(4 << 20))
        uploading = asyncio.create_task(upload.run())
        before = -1
        while before != upload.sent or upload.credit:
            before = upload.sent
            await asyncio.sleep(0.05)
        assert upload.sent <= (1 << 16) + 2 * AHEAD
        uploading.cancel()
        client.close()


async def test_a_reader_learns_that_its_client_has_gone(pki: CertificatePaths) -> None:
    reader = Reader()
    async with serving(reader, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf")
        await eventually(lambda: reader.received == b"half")
        client.close()
        await eventually(lambda: reader.gone)


class _Upload:
    """Sends a body over HTTP/2, as the windows allow."""

    def __init__(self, client: Http2Client, body: bytes) -> None:
        self._client, self._body = client, body
        self.stream = client.open("/", "POST")
        self.sent = 0

    @property
    def credit(self) -> int:
        return self._client.h2.local_flow_control_window(self.stream)

    async def run(self) -> None:
        while self.sent < len(self._body):
            await self._client.until(lambda: self.credit > 0)
            size = min(self.credit, self._client.h2.max_outbound_frame_size, len(self._body) - self.sent)
            piece, self.sent = self._body[self.sent : self.sent + size], self.sent + size
            self._client.h2.send_data(self.stream, piece, end_stream=self.sent == len(self._body))
            self._client.flush()
