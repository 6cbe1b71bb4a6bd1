"""The HTTP transport on real sockets: TLS, client certificates, tokens, impersonation, proxies."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from api_server_fixture import ApiServer
from certificates_fixture import TestCA

from pilothouse.client.config.model import ClientConfig, ConfigError, ExecConfig, ImpersonationConfig, TLSConfig
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.machinery.errors import Unauthorized
from pilothouse.machinery.tls import verify_as_go


@pytest.fixture(scope="module")
def ca() -> TestCA:
    return TestCA()


@pytest.fixture
async def tls_server(ca: TestCA, tmp_path: Path) -> AsyncIterator[ApiServer]:
    """Asks for client certificates; one that is shown must be the CA's."""
    pair = ca.issue("server", "kubernetes")
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    (tmp_path / "ca.pem").write_bytes(ca.certificate)
    context = verify_as_go(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem")))
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    async with ApiServer().run(ssl_context=context) as running:
        yield running


async def test_a_client_certificate_from_data_or_files_is_shown(
    tls_server: ApiServer, ca: TestCA, tmp_path: Path
) -> None:
    pair = ca.issue("me")
    (tmp_path / "cert").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    from_data = TLSConfig(ca_data=ca.certificate, cert_data=pair.certificate, key_data=pair.key)
    from_files = TLSConfig(ca_file=tmp_path / "ca.pem", cert_file=tmp_path / "cert", key_file=tmp_path / "key")
    for tls in (from_data, from_files):
        async with connect(ClientConfig(host=tls_server.url, tls=tls)) as client:
            assert (await client.resource("v1", "configmaps").list())["items"] == []


async def test_a_server_that_another_ca_signed_is_not_trusted_unless_that_is_asked_for(
    tls_server: ApiServer, ca: TestCA
) -> None:
    pair = ca.issue("me")
    other = TLSConfig(ca_data=TestCA().certificate, cert_data=pair.certificate, key_data=pair.key)
    async with connect(ClientConfig(host=tls_server.url, tls=other)) as client:
        with pytest.raises(ConnectionFailed):
            await client.request("POST", "/x", body={})
    insecure = TLSConfig(insecure=True, cert_data=pair.certificate, key_data=pair.key)
    async with connect(ClientConfig(host=tls_server.url, tls=insecure)) as client:
        await client.resource("v1", "configmaps").list()


async def test_the_name_in_the_servers_certificate_can_be_another(tls_server: ApiServer, ca: TestCA) -> None:
    pair = ca.issue("me")
    for name, trusted in (("kubernetes", True), ("elsewhere", False)):
        tls = TLSConfig(ca_data=ca.certificate, cert_data=pair.certificate, key_data=pair.key, server_name=name)
        async with connect(ClientConfig(host=tls_server.url, tls=tls)) as client:
            if trusted:
                await client.resource("v1", "configmaps").list()
            else:
                with pytest.raises(ConnectionFailed):
                    await client.request("POST", "/x", body={})


async def test_half_a_certificate_is_refused(ca: TestCA) -> None:
    tls = TLSConfig(ca_data=ca.certificate, cert_data=ca.issue("me").certificate)
    async with connect(ClientConfig(host="https://127.0.0.1:1", tls=tls)) as client:
        with pytest.raises(ConfigError, match="needs a key"):
            await client.get_json("/version")
    broken = TLSConfig(ca_data=b"nonsense")
    async with connect(ClientConfig(host="https://127.0.0.1:1", tls=broken)) as client:
        with pytest.raises(ConfigError, match="cannot load"):
            await client.get_json("/version")


async def test_tokens_and_impersonation_travel_as_headers(server: ApiServer) -> None:
    who = ImpersonationConfig(user="jane", uid="7", groups=("a", "b"), extra=(("scopes", "x"),))
    async with connect(ClientConfig(host=server.url, token="secret", impersonate=who, user_agent="me/1")) as client:
        await client.resource("v1", "configmaps").list()
    sent = server.headers[-1]
    assert sent["authorization"] == "Bearer secret"
    assert sent["impersonate-user"] == "jane"
    assert sent["impersonate-uid"] == "7"
    assert sent["impersonate-extra-scopes"] == "x"
    assert sent["impersonate-group"] == "b"
    assert sent["user-agent"] == "me/1"
    assert sent["accept-encoding"] == "gzip"
    async with connect(ClientConfig(host=server.url, username="u", password="p", disable_compression=True)) as client:
        await client.resource("v1", "configmaps").list()
    assert server.headers[-1]["authorization"] == "Basic dTpw"
    assert server.headers[-1]["accept-encoding"] == "identity"


async def test_a_token_that_the_server_refuses_is_fetched_anew(server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    async with connect(ClientConfig(host=server.url, token_file=tmp_path / "token")) as client:
        maps = client.resource("v1", "configmaps")
        await maps.list()
        (tmp_path / "token").write_text("new")
        server.faults.fail(401, reason="Unauthorized")
        with pytest.raises(Unauthorized):
            await maps.list()
        await maps.list()
    assert [headers["authorization"] for headers in server.headers] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_certificate_that_a_plugin_renews_is_used_for_new_connections(
    tls_server: ApiServer, ca: TestCA, tmp_path: Path
) -> None:
    for number in (1, 2):
        pair = ca.issue(f"me-{number}")
        status = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
        credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
        (tmp_path / f"credential-{number}").write_text(json.dumps(credential))
    script = tmp_path / "plugin"
    script.write_text(
        f"#!{sys.executable}\nimport os, pathlib\nfolder = pathlib.Path({str(tmp_path)!r})\n"
        "number = 2 if (folder / 'ran').exists() else 1\n(folder / 'ran').touch()\n"
        "print((folder / f'credential-{number}').read_text())\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    plugin = ExecConfig(command=str(script), api_version="client.authentication.k8s.io/v1")
    config = ClientConfig(host=tls_server.url, tls=TLSConfig(ca_data=ca.certificate), exec=plugin)
    async with connect(config) as client:
        maps = client.resource("v1", "configmaps")
        await maps.list()
        tls_server.faults.fail(401, reason="Unauthorized")
        with pytest.raises(Unauthorized):
            await maps.list()
        await maps.list()


async def test_a_proxy_from_the_environment_is_used_unless_the_host_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "near.example.com")
    assert HttpTransport(ClientConfig(host="https://far.example.com:6443"))._proxy == "http://proxy:3128"
    assert HttpTransport(ClientConfig(host="https://near.example.com:6443"))._proxy is None
    assert HttpTransport(ClientConfig(host="http://far.example.com"))._proxy is None


async def test_requests_go_through_a_proxy_of_a_known_kind(server: ApiServer) -> None:
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        writer.close()

    listener = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, connect(ClientConfig(host="http://far:80", proxy_url=f"http://127.0.0.1:{port}")) as client:
        await client.get_json("/version")
    assert seen == [b"GET http://far/version HTTP/1.1\r\n"]
    with pytest.raises(ConfigError, match="unsupported scheme 'ftp', must be http, https, or socks5"):
        HttpTransport(ClientConfig(host="http://far", proxy_url="ftp://x"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_whose_connection_breaks_off_is_not_sent_again(method: str) -> None:
    heard: list[bytes] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with connect(ClientConfig(host=f"http://127.0.0.1:{port}")) as client:
            with pytest.raises(ConnectionFailed):
                await client.request(method, "/x", body={})
    assert len(heard) == 1
