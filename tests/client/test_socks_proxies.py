"""Requests through a SOCKS5 proxy, with and without TLS, a password, and a proxy that refuses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from api_server_fixture import ApiServer
from certificates_fixture import TestCA

from pilothouse.client.config.model import ClientConfig, TLSConfig
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed


@dataclass
class SocksProxy:
    """Leads everybody to one server, and keeps where they wanted to go."""

    to_port: int
    password: bytes = b""
    reply: int = 0
    asked: list[tuple[bytes, int]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x02" if self.password else b"\x05\x00")
        if self.password and not await self._knows(reader, writer):
            writer.close()
            return
        _, _, _, kind = await reader.readexactly(4)
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host, port = await reader.readexactly(size), int.from_bytes(await reader.readexactly(2))
        self.asked.append((host, port))
        writer.write(bytes((5, self.reply, 0, 1)) + bytes(6))
        if self.reply:
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.to_port)
        await asyncio.gather(_copy(reader, back), _copy(there, writer), return_exceptions=True)

    async def _knows(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, size = await reader.readexactly(2)
        name = await reader.readexactly(size)
        word = await reader.readexactly((await reader.readexactly(1))[0])
        known = name + b":" + word == self.password
        writer.write(b"\x01\x00" if known else b"\x01\x01")
        return known

    @asynccontextmanager
    async def run(self) -> AsyncIterator[str]:
        listener = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        finally:
            listener.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def port_of(server: ApiServer) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_the_proxy_is_told_the_name_of_the_server(server: ApiServer, scheme: str) -> None:
    proxy = SocksProxy(port_of(server))
    async with (
        proxy.run() as address,
        connect(ClientConfig(host="http://far.example.com:81", proxy_url=f"{scheme}://{address}")) as client,
    ):
        assert (await client.resource("v1", "configmaps").list())["items"] == []
    assert proxy.asked == [(b"far.example.com", 81)]


async def test_a_server_with_tls_shows_its_own_certificate_behind_a_proxy_with_a_password(tmp_path: Path) -> None:
    ca = TestCA()
    pair = ca.issue("server", "far.example.com")
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem")
    async with ApiServer().run(ssl_context=context) as server:
        proxy = SocksProxy(port_of(server), password=b"me:it s")
        async with proxy.run() as address:
            config = ClientConfig(
                host="https://far.example.com",
                proxy_url=f"socks5://me:it%20s@{address}",
                tls=TLSConfig(ca_data=ca.certificate),
            )
            async with connect(config) as client:
                assert (await client.resource("v1", "configmaps").list())["items"] == []
    assert proxy.asked == [(b"far.example.com", 443)]


@pytest.mark.parametrize(
    ("proxy", "user", "why"),
    [
        (SocksProxy(0, reply=5), "", "connection refused"),
        (SocksProxy(0, password=b"me:secret"), "me:wrong@", "username/password authentication failed"),
        (SocksProxy(0, password=b"me:secret"), "", "no acceptable authentication methods"),
    ],
)
async def test_a_proxy_that_refuses_says_why(proxy: SocksProxy, user: str, why: str) -> None:
    async with (
        proxy.run() as address,
        connect(ClientConfig(host="http://10.0.0.7:81", proxy_url=f"socks5://{user}{address}")) as client,
    ):
        with pytest.raises(ConnectionFailed, match=why):
            await client.request("POST", "/x", body={})


async def test_a_proxy_of_the_environment_may_be_one(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = SocksProxy(port_of(server))
    async with proxy.run() as address:
        monkeypatch.setenv("http_proxy", f"socks5://{address}")
        async with connect(ClientConfig(host="http://10.0.0.7:81")) as client:
            assert (await client.resource("v1", "configmaps").list())["items"] == []
    assert proxy.asked == [(bytes((10, 0, 0, 7)), 81)]
