"""Sessions are not resumed, by no version of TLS: every connection shows its certificate."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest
from patience import PATIENCE
from serving_harness import client_context, secure_options, serving

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving import openssl
from pilothouse.apiserver.serving.client_certificate import client_certificate
from pilothouse.controlplane.certificates.paths import CertificatePaths

ASK = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def who(request: Request) -> Response:
    certificate = client_certificate(request.transport)
    return Response(200, certificate.common_name.encode() if certificate else b"nobody")


def connect(port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    try:
        return context.wrap_socket(sock, server_hostname="localhost", session=session)
    except BaseException:
        sock.close()
        raise


def ask(connection: ssl.SSLSocket) -> bytes:
    connection.sendall(ASK)
    return connection.recv(65536)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_who_wants_to_resume_a_session_has_to_begin_anew(pki: CertificatePaths, version: ssl.TLSVersion) -> None:
    context = client_context(pki, alpn="http/1.1", cert=pki.admin_cert, key=pki.admin_key)
    context.minimum_version = context.maximum_version = version
    async with serving(who, secure_options(pki)) as server:
        with await asyncio.to_thread(connect, server.port, context) as first:
            assert (await asyncio.to_thread(ask, first)).endswith(b"kubernetes-admin")
            with await asyncio.to_thread(connect, server.port, context, first.session) as again:
                assert not again.session_reused
                assert (await asyncio.to_thread(ask, again)).endswith(b"kubernetes-admin")


async def test_where_openssl_keeps_sessions_who_resumes_one_is_refused_once(
    pki: CertificatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openssl.CertificateRequests, "keep_no_sessions", lambda _: None)
    context = client_context(pki, alpn="http/1.1", cert=pki.admin_cert, key=pki.admin_key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(who, secure_options(pki)) as server:
        with await asyncio.to_thread(connect, server.port, context) as first:
            with pytest.raises(OSError):
                await asyncio.to_thread(connect, server.port, context, first.session)
            with await asyncio.to_thread(connect, server.port, context, first.session) as again:
                assert (await asyncio.to_thread(ask, again)).endswith(b"kubernetes-admin")
