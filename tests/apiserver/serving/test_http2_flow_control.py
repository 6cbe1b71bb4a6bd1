from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from serving_harness import Http2Client, answering, client_context, eventually, secure_options, serving, transport_of

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.controlplane.certificates.paths import CertificatePaths

CHUNK = 10_000


class Fountain:
    """A stream that never ends by itself, and knows what was taken from it."""

    def __init__(self) -> None:
        self.taken = 0
        self.closed = False

    async def __call__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                self.taken += CHUNK
                yield b"x" * CHUNK
        finally:
            self.closed = True


async def test_a_stream_is_not_asked_for_more_than_the_client_s_window_takes(pki: CertificatePaths) -> None:
    fountain = Fountain()
    async with serving(answering(fountain), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=1000)
        stream = client.ask("/")
        log = client.streams[stream]
        await client.until(lambda: len(log.body) == 1000)
        assert fountain.taken == CHUNK
        client.grant(stream, 30_000)
        await client.until(lambda: len(log.body) == 31_000)
        assert fountain.taken == 4 * CHUNK
        client.close()
        await eventually(lambda: fountain.closed)


async def test_a_whole_body_waits_for_the_window_and_arrives_whole(pki: CertificatePaths) -> None:
    body = bytes(range(256)) * 4000
    async with serving(answering(body), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=100)
        stream = client.ask("/")
        log, granted = client.streams[stream], 100

        def has_come(size: int) -> bool:
            return len(log.body) == size

        while granted < len(body):
            await client.until(partial(has_come, granted))
            step = min(199_999, len(body) - granted)
            client.grant(stream, step)
            granted += step
        assert (await client.answer(stream)).body == body


async def test_streams_share_the_window_of_the_connection(pki: CertificatePaths) -> None:
    """65,535 bytes of credit for all streams, until the client grants more."""
    async with serving(answering(b"x" * 50_000), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=1 << 20)
        first, second = client.ask("/"), client.ask("/")
        await client.until(lambda: sum(len(client.streams[s].body) for s in (first, second)) == 65_535)
        client.h2.increment_flow_control_window(1 << 20)
        client.flush()
        assert len((await client.answer(first)).body) == len((await client.answer(second)).body) == 50_000


async def test_a_client_may_shrink_its_windows_below_nothing(pki: CertificatePaths) -> None:
    fountain = Fountain()
    async with serving(answering(fountain), secure_options(pki)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=5000)
        stream = client.ask("/")
        log = client.streams[stream]
        await client.until(lambda: len(log.body) == 5000)
        client.h2.update_settings({4: 1000})
        client.flush()
        await client.until(lambda: any(type(event).__name__ == "SettingsAcknowledged" for event in client.events[1:]))
        client.grant(stream, 4500)
        await client.until(lambda: len(log.body) == 5500)


async def test_a_stream_whose_client_grants_nothing_is_reset_in_time_and_its_siblings_live_on(
    pki: CertificatePaths,
) -> None:
    fountain = Fountain()

    async def handler(request: Request) -> Response:
        return Response(200, fountain()) if request.path == "/stuck" else Response(200, b"fine")

    async with serving(handler, secure_options(pki), limits=Limits(write_timeout=0.05)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=1000)
        stuck = client.ask("/stuck")
        log = await client.answer(stuck)
        assert (len(log.body), log.reset) == (1000, 8)
        await eventually(lambda: fountain.closed)
        assert (await client.get("/")).body == b"fine"


async def test_a_stuck_whole_body_is_reset_in_time(pki: CertificatePaths) -> None:
    async with serving(answering(b"x" * 9000), secure_options(pki), limits=Limits(write_timeout=0.05)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=1000)
        log = await client.get("/")
        assert (len(log.body), log.reset) == (1000, 8)


async def test_a_client_that_does_not_read_at_all_is_cut_off_and_little_is_queued_for_it(pki: CertificatePaths) -> None:
    fountain = Fountain()
    async with serving(answering(fountain), secure_options(pki), limits=Limits(write_timeout=0.2)) as server:
        client = await Http2Client.connect(server.port, client_context(pki, alpn="h2"), window=(1 << 31) - 1)
        transport_of(client.writer).pause_reading()
        client.h2.increment_flow_control_window((1 << 31) - 65_536)
        client.ask("/")
        await eventually(lambda: fountain.closed)
        assert fountain.taken < 32 << 20
        await eventually(lambda: server.connections == 0)
