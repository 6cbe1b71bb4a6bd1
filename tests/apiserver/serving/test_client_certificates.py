"""Certificates of clients: good or not at each request, and never a reason not to hear what else a client shows."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from serving_harness import Http1Client, Http2Client, client_context, eventually, secure_options, serving

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.interface import UnionAuthenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaderAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authn.x509 import X509Authenticator
from pilothouse.apiserver.filters.authentication import with_authentication
from pilothouse.apiserver.filters.status_errors import with_status_errors
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.serving import tls_context
from pilothouse.apiserver.serving.listener import TLS_HANDSHAKE_ERRORS
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_options import KeyPair, SniCertificate
from pilothouse.controlplane.certificates.issue import Authority, certificate_pem, key_pem, new_authority, new_key
from pilothouse.controlplane.certificates.keep import keep_authority
from pilothouse.controlplane.certificates.paths import CertificatePaths

HOUR = timedelta(hours=1)
GOOD_TOKEN = "Authorization: Bearer good\r\n"
TOKENS = StaticTokens({"good": User("holder of a token")})


@dataclass
class Clients:
    """Issues certificates to clients, and knows what they show."""

    pki: CertificatePaths
    folder: Path
    made: int = 0

    @property
    def users(self) -> Authority:
        return keep_authority("", self.pki.ca_cert, self.pki.ca_key)

    @property
    def proxies(self) -> Authority:
        return keep_authority("", self.pki.front_proxy_ca_cert, self.pki.front_proxy_ca_key)

    def authority(self, name: str = "elsewhere") -> Authority:
        key = new_key()
        return Authority(new_authority(name, key), key)

    def context(
        self,
        authority: Authority,
        name: str = "bob",
        *,
        alpn: str = "http/1.1",
        begins: timedelta = -HOUR,
        ends: timedelta = HOUR,
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    ) -> ssl.SSLContext:
        """For a client with a certificate that begins and ends so long from now."""
        assert authority.key is not None
        key, now = new_key(), datetime.now(UTC)
        issued = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .sign(authority.key, hashes.SHA256())
        )
        self.made += 1
        file = self.folder / f"client-{self.made}.pem"
        file.write_bytes(key_pem(key) + certificate_pem(issued))
        return client_context(self.pki, alpn=alpn, cert=file)


@dataclass
class Clock:
    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clients(pki: CertificatePaths, tmp_path: Path) -> Clients:
    return Clients(pki, tmp_path)


def options(pki: CertificatePaths) -> SecureServingInfo:
    found = secure_options(pki)
    return replace(found, files=replace(found.files, client_cas=(pki.ca_cert, pki.front_proxy_ca_cert)))


def authenticating(pki: CertificatePaths, clock: Clock | None = None, users: Path | None = None) -> Handler:
    """Answers with the name of the user, as the chain of filters would find it."""
    now = clock or Clock()

    async def who(request: Request) -> Response:
        return Response(200, request.user.name.encode())

    authenticator = UnionAuthenticator(
        [
            RequestHeaderAuthenticator(STANDARD, AuthorityFiles([pki.front_proxy_ca_cert]), clock=now),
            X509Authenticator(AuthorityFiles([users or pki.ca_cert], poll_seconds=0), clock=now),
            BearerAuthenticator(TOKENS),
        ]
    )
    return with_status_errors(with_authentication(authenticator, anonymous=True)(who))


async def answer(server: Server, context: ssl.SSLContext, headers: str = "") -> tuple[int, bytes | None, bytes]:
    """The status, the Connection header and, of a success, the body."""
    client = await Http1Client.connect(server.port, context)
    client.ask("/", headers=headers)
    found = await client.answer()
    client.close()
    return found.status, found.headers.get(b"connection"), found.body if found.status == 200 else b""


@pytest.mark.parametrize("headers", [{}, {"x-remote-user": "amy"}])
async def test_a_certificate_that_ends_while_its_connection_is_open_is_good_no_longer(
    clients: Clients, headers: dict[str, str]
) -> None:
    clock, authority = Clock(), clients.proxies if headers else clients.users
    sent, named = "".join(f"{name}: {value}\r\n" for name, value in headers.items()), b"amy" if headers else b"bob"
    async with serving(authenticating(clients.pki, clock), options(clients.pki)) as server:
        first = await Http1Client.connect(server.port, clients.context(authority))
        second = await Http2Client.connect(server.port, clients.context(authority, alpn="h2"))
        expected = [(200, named), (401, None), (200, named)]
        for moment, (status, body) in zip((0, 3700, -3700), expected, strict=True):
            clock.now += moment
            first.ask("/", headers=sent)
            over_1 = await first.answer()
            over_2 = await second.get("/", headers=list(headers.items()))
            assert (over_1.status, over_2.status) == (status, status)
            assert body is None or (over_1.body, over_2.body) == (body, body)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ends": -timedelta(minutes=1)},
        {"begins": HOUR / 2},
        {"purpose": ExtendedKeyUsageOID.SERVER_AUTH},
        {"name": "bob\r\nX-Remote-Group: system:masters"},
        {"authority": "elsewhere"},
        {"authority": "kubernetes"},
    ],
    ids=["expired", "not yet valid", "for servers", "several headers", "of a stranger", "of an impostor"],
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_bad_certificate_names_nobody_but_a_token_beside_it_still_counts(
    clients: Clients, wrong: dict[str, Any], version: ssl.TLSVersion
) -> None:
    """An impostor is a CA that has only the name of one of ours."""
    more = dict(wrong)
    authority = clients.authority(more.pop("authority")) if "authority" in more else clients.users
    context = clients.context(authority, **more)
    context.maximum_version = version
    async with serving(authenticating(clients.pki), options(clients.pki)) as server:
        assert (await answer(server, context))[0] == 401
        assert (await answer(server, context, "X-Remote-User: amy\r\n"))[0] == 401
        assert await answer(server, context, GOOD_TOKEN) == (200, None, b"holder of a token")
        assert (await answer(server, context, "Authorization: Bearer bad\r\n"))[0] == 401
        assert (await answer(server, clients.context(clients.users)))[2] == b"bob"


async def test_all_of_a_chain_must_be_in_time(clients: Clients) -> None:
    key, root, now = new_key(), clients.users, datetime.now(UTC)
    assert root.key is not None
    between = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "between")]))
        .issuer_name(root.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * HOUR)
        .not_valid_after(now + HOUR / 2)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(root.key, hashes.SHA256())
    )
    context = clients.context(Authority(between, key))
    file = clients.folder / f"client-{clients.made}.pem"
    file.write_bytes(file.read_bytes() + certificate_pem(between))
    context.load_cert_chain(file)
    clock = Clock()
    async with serving(authenticating(clients.pki, clock), options(clients.pki)) as server:
        assert (await answer(server, context))[2] == b"bob"
        clock.now += 2700
        assert (await answer(server, context))[0] == 401


async def test_a_connection_is_as_good_as_the_ca_file_says_now(clients: Clients) -> None:
    pki, bundle, newcomer = clients.pki, clients.folder / "bundle.crt", clients.authority("newcomer")
    bundle.write_bytes(pki.ca_cert.read_bytes())
    secure = SecureServing(replace(options(pki), files=replace(options(pki).files, client_cas=(bundle,))))
    server = Server(authenticating(pki, users=bundle), [secure.endpoint])
    await server.start()
    old, new = clients.context(clients.users), clients.context(newcomer, "nora")
    kept = await Http1Client.connect(server.port, old)
    kept.ask("/")
    assert (await kept.answer()).body == b"bob"
    assert await answer(server, new) == (401, b"close", b"")  # so that its client does not stay with this handshake

    bundle.write_bytes(certificate_pem(newcomer.certificate))
    assert secure.refresh()
    kept.ask("/")
    assert (await kept.answer()).status == 401
    assert (await answer(server, new))[2] == b"nora"
    assert asked_for(await handshake(server, pki), newcomer)
    await server.abort()


async def handshake(server: Server, pki: CertificatePaths, name: str = "localhost") -> bytes:
    """What the server says in its handshake, as one."""
    context, heard = client_context(pki, alpn="http/1.1"), bytearray()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def hear(*message: Any) -> None:
        if message[1] == "read":
            heard.extend(message[-1])

    context._msg_callback = hear  # type: ignore[attr-defined]  # for debugging, says Python
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context, server_hostname=name)
    writer.transport.abort()
    return bytes(heard)


def asked_for(heard: bytes, authority: Authority) -> bool:
    return authority.certificate.subject.public_bytes() in heard


async def test_the_handshake_names_the_cas_whose_certificates_are_wanted(clients: Clients) -> None:
    pki = clients.pki
    given = options(pki)
    sni = (SniCertificate(KeyPair(pki.serving_cert, pki.serving_key), ("other.example",)),)
    async with serving(authenticating(pki), replace(given, files=replace(given.files, sni=sni))) as server:
        for name in ("localhost", "other.example"):
            heard = await handshake(server, pki, name)
            assert asked_for(heard, clients.users)
            assert asked_for(heard, clients.proxies)
            assert not asked_for(heard, clients.authority())


async def test_where_openssl_is_out_of_reach_bad_certificates_fail_in_the_handshake_and_late_ones_do_not(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ordinary_context() -> tuple[ssl.SSLContext, None]:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None

    monkeypatch.setattr(tls_context, "server_context", ordinary_context)
    before = TLS_HANDSHAKE_ERRORS._value.get()
    async with serving(authenticating(clients.pki), options(clients.pki)) as server:
        stranger = await Http1Client.connect(server.port, clients.context(clients.authority()))
        stranger.ask("/")
        assert await stranger.end() == b""
        await eventually(lambda: TLS_HANDSHAKE_ERRORS._value.get() == before + 1)
        late = clients.context(clients.users, ends=-timedelta(minutes=1))
        assert (await answer(server, late))[0] == 401
        assert (await answer(server, late, GOOD_TOKEN))[2] == b"holder of a token"
        assert (await answer(server, clients.context(clients.users)))[2] == b"bob"


@pytest.mark.parametrize("authority", ["elsewhere", "kubernetes"])
async def test_a_bad_certificate_may_come_in_pieces(clients: Clients, authority: str) -> None:
    """OpenSSL's list of errors is the thread's: what it says of the certificate must not end the handshake later."""
    context, incoming, outgoing = clients.context(clients.authority(authority)), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with serving(authenticating(clients.pki), options(clients.pki)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        async def flush() -> None:
            for byte in outgoing.read():
                writer.write(bytes((byte,)))
                await asyncio.sleep(0)  # the server's turn: it reads what there is

        async def over_tls(step: Callable[[], Any]) -> Any:
            while True:
                try:
                    done = step()
                except ssl.SSLWantReadError:
                    await flush()
                    incoming.write(await reader.read(65536))
                else:
                    await flush()
                    return done

        await over_tls(tls.do_handshake)
        tls.write(f"GET / HTTP/1.1\r\nHost: here\r\n{GOOD_TOKEN}\r\n".encode())
        assert (await over_tls(lambda: tls.read(1000))).startswith(b"HTTP/1.1 200 ")
        writer.transport.abort()
