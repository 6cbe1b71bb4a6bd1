from __future__ import annotations

import asyncio
import shutil
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from patience import PATIENCE
from serving_harness import Http1Client, Http2Client, answering, client_context, secure_options, serving

from pilothouse.apiserver.authn.authorities import AuthorityFiles
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.client_certificate import client_certificate
from pilothouse.apiserver.serving.secure import SecureServing, SecureServingInfo
from pilothouse.apiserver.serving.server import Server
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import (
    DEFAULT_CIPHERS,
    KeyPair,
    SniCertificate,
    parse_sni_certificate,
    tls_options,
)
from pilothouse.controlplane.certificates.ensure import ServingNames
from pilothouse.controlplane.certificates.issue import (
    Authority,
    Profile,
    certificate_pem,
    issue,
    key_pem,
    new_authority,
    new_key,
)
from pilothouse.controlplane.certificates.paths import CertificatePaths


async def who(request: Request) -> Response:
    found = client_certificate(request.transport)
    if found is None:
        return Response(200, b"nobody")
    assert client_certificate(request.transport) is found
    return Response(200, f"{found.common_name} {found.organizations} {found.uid!r} {len(found.chain)}".encode())


def pair(directory: Path, name: str, authority: Authority, *names: str) -> KeyPair:
    """A serving certificate for some names."""
    key = new_key()
    profile = Profile(name, names=ServingNames(frozenset(names), frozenset()))
    files = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
    files.cert_file.write_bytes(certificate_pem(issue(profile, key.public_key(), authority)))
    files.key_file.write_bytes(key_pem(key))
    return files


@pytest.fixture(scope="module")
def authority() -> Authority:
    key = new_key()
    return Authority(new_authority("elsewhere", key), key)


async def test_clients_choose_between_http_1_and_http_2(pki: CertificatePaths) -> None:
    async with serving(who, secure_options(pki)) as server:
        for alpn in ("h2", "http/1.1"):
            client = await Http1Client.connect(server.port, client_context(pki, alpn=alpn))
            assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == alpn
            client.close()


async def test_http_2_can_be_switched_off(pki: CertificatePaths) -> None:
    async with serving(who, secure_options(pki, disable_http2_serving=True)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="h2"))
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() is None
        client.close()


async def test_the_handler_sees_the_client_s_certificate_under_both_protocols(pki: CertificatePaths) -> None:
    async with serving(who, secure_options(pki)) as server:
        expected = b"kubernetes-admin ('system:masters',) '' 2"
        context = client_context(pki, alpn="http/1.1", cert=pki.admin_cert, key=pki.admin_key)
        first = await Http1Client.connect(server.port, context)
        first.ask("/")
        assert (await first.answer()).body == expected
        context = client_context(pki, alpn="h2", cert=pki.admin_cert, key=pki.admin_key)
        second = await Http2Client.connect(server.port, context)
        assert [(await second.get("/")).body for _ in range(2)] == [expected, expected]


async def test_a_client_without_a_certificate_is_served(pki: CertificatePaths) -> None:
    async with serving(who, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/")
        assert (await client.answer()).body == b"nobody"


async def test_a_certificate_tells_which_authority_it_was_issued_under(pki: CertificatePaths) -> None:
    seen: list[list[bool]] = []
    users, proxies = (AuthorityFiles([file])() for file in (pki.ca_cert, pki.front_proxy_ca_cert))

    async def handler(request: Request) -> Response:
        found = client_certificate(request.transport)
        assert found is not None
        seen.append([found.issued_under(each, time.time()) for each in (users, proxies)])
        return Response(200, b"")

    options = secure_options(pki)
    files = replace(options.files, client_cas=(pki.ca_cert, pki.front_proxy_ca_cert))
    async with serving(handler, replace(options, files=files)) as server:
        for cert, key in (
            (pki.admin_cert, pki.admin_key),
            (pki.front_proxy_client_cert, pki.front_proxy_client_key),
        ):
            context = client_context(pki, alpn="http/1.1", cert=cert, key=key)
            client = await Http1Client.connect(server.port, context)
            client.ask("/")
            await client.answer()
    assert seen == [[True, False], [False, True]]


async def test_old_versions_of_tls_are_refused(pki: CertificatePaths) -> None:
    async with serving(who, secure_options(pki, tls_min_version="VersionTLS13")) as server:
        context = client_context(pki, alpn="http/1.1")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):
            await Http1Client.connect(server.port, context)


async def test_cipher_suites_have_go_s_names(pki: CertificatePaths) -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)
    async with serving(who, secure_options(pki, tls_cipher_suites=suites)) as server:
        context = client_context(pki, alpn="http/1.1")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        client = await Http1Client.connect(server.port, context)
        assert client.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
        client.close()


def test_unknown_versions_and_suites_are_refused_in_upstream_s_words() -> None:
    with pytest.raises(ValueError, match='unknown tls version "VersionTLS9"'):
        tls_options("VersionTLS9")
    with pytest.raises(ValueError, match="Cipher suite ROT13 not supported or doesn't exist"):
        tls_options("", ["ROT13"])
    assert tls_options("", []).ciphers == DEFAULT_CIPHERS
    assert tls_options("", ["TLS_AES_128_GCM_SHA256"]).min_version is ssl.TLSVersion.TLSv1_3


def test_sni_certificates_are_given_as_upstream_s_flag_has_them() -> None:
    parsed = parse_sni_certificate("foo.crt,foo.key:*.foo.com, foo.com")
    assert parsed == SniCertificate(KeyPair(Path("foo.crt"), Path("foo.key")), ("*.foo.com", "foo.com"))
    assert parse_sni_certificate("a , b").names == ()
    for bad in ("a", "a,b,c", "a,b:"):
        with pytest.raises(ValueError):
            parse_sni_certificate(bad)


async def served_name(server: Server, authority: Authority, asked: str | None) -> str:
    """The common name of the certificate that a client gets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context, server_hostname=asked or "")
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    subject = x509.load_der_x509_certificate(der).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


async def test_the_certificate_follows_the_name_that_is_asked_for(
    pki: CertificatePaths, authority: Authority, tmp_path: Path
) -> None:
    extracted = pair(tmp_path, "extracted", authority, "a.example", "*.wild.example", "both.example")
    given = pair(tmp_path, "given", authority, "unused.example")
    address = pair(tmp_path, "address", authority, "other.example")
    later = pair(tmp_path, "later", authority, "a.example", "late.example")
    sni = (
        SniCertificate(extracted),
        SniCertificate(given, ("both.example", "x.wild.example")),
        SniCertificate(address, ("127.0.0.1",)),
        SniCertificate(later),
    )
    options = secure_options(pki)
    async with serving(who, replace(options, files=replace(options.files, sni=sni))) as server:
        expected = {
            "a.example": "extracted",
            "A.Example": "extracted",
            "late.example": "later",
            "y.wild.example": "extracted",
            "x.wild.example": "given",
            "deep.y.wild.example": "kube-apiserver",
            "both.example": "given",
            "unused.example": "kube-apiserver",
            "elsewhere.example": "kube-apiserver",
            None: "address",
        }
        assert {asked: await served_name(server, authority, asked) for asked in expected} == expected


async def test_new_connections_get_a_new_certificate_and_old_ones_live_on(
    pki: CertificatePaths, authority: Authority, tmp_path: Path
) -> None:
    files = pair(tmp_path, "serving", authority, "one.example")
    secure = SecureServing(SecureServingInfo(TlsFiles(files), "127.0.0.1", 0))
    server = Server(answering(b"hi"), [secure.endpoint])
    await server.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    old = await Http1Client.connect(server.port, context)
    assert secure.refresh() is False

    renewed = pair(tmp_path, "renewed", authority, "two.example")
    shutil.copy(renewed.cert_file, files.cert_file)
    assert secure.refresh() is False  # the key is still the old one's
    assert await served_name(server, authority, None) == "serving"
    shutil.copy(renewed.key_file, files.key_file)
    assert secure.refresh() is True
    assert await served_name(server, authority, None) == "renewed"

    files.cert_file.unlink()
    assert secure.refresh() is False
    assert await served_name(server, authority, None) == "renewed"
    old.ask("/")
    assert (await old.answer()).body == b"hi"
    await server.abort()


async def test_certificates_are_refreshed_by_themselves(authority: Authority, tmp_path: Path) -> None:
    files = pair(tmp_path, "serving", authority, "one.example")
    secure = SecureServing(SecureServingInfo(TlsFiles(files), "127.0.0.1", 0), poll_seconds=0.01)
    server = Server(answering(b"hi"), [secure.endpoint])
    await server.start()
    renewed = pair(tmp_path, "renewed", authority, "two.example")
    shutil.copy(renewed.key_file, files.key_file)
    shutil.copy(renewed.cert_file, files.cert_file)
    async with asyncio.timeout(PATIENCE):
        while await served_name(server, authority, None) != "renewed":  # noqa: ASYNC110  # only a client can tell
            await asyncio.sleep(0.01)
    await server.abort()


def test_files_that_do_not_load_are_an_error_at_the_start(pki: CertificatePaths, tmp_path: Path) -> None:
    missing = KeyPair(tmp_path / "a", tmp_path / "b")
    with pytest.raises(OSError):
        SecureServing(SecureServingInfo(TlsFiles(missing)))
    mixed = KeyPair(pki.serving_cert, pki.admin_key)
    with pytest.raises(OSError):
        SecureServing(SecureServingInfo(TlsFiles(mixed)))
