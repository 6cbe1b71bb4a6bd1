"""What goes wrong on the way to another server is said as Go says it, whoever asked."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import replace

import pytest

from pilothouse.apiserver.outbound.failures import DialFailed, broken_connection, dial_problem
from pilothouse.apiserver.outbound.reaching import reach
from pilothouse.apiserver.outbound.targets import Target

TARGET = Target("web.example", 8443, "/", address="192.0.2.7")


def unverified(code: int, message: str = "") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, message
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError()
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (socket.gaierror(), "dial tcp: lookup 192.0.2.7: no such host"),
        (TimeoutError(), "dial tcp 192.0.2.7:8443: i/o timeout"),
        (OSError(errno.ETIMEDOUT, "x"), "dial tcp 192.0.2.7:8443: connect: connection timed out"),
        (OSError(errno.ECONNREFUSED, "Connect call failed"), "dial tcp 192.0.2.7:8443: connect: connection refused"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), "dial tcp 192.0.2.7:8443: connect: no route to host"),
        (ConnectionResetError(), "EOF"),
        (ssl.SSLEOFError(), "EOF"),
        (tls_error("WRONG_VERSION_NUMBER"), "http: server gave HTTP response to HTTPS client"),
        (tls_error("HANDSHAKE_FAILURE"), "remote error: tls: HANDSHAKE_FAILURE"),
        (unverified(10), "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"),
        (unverified(19), "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        (
            unverified(62),
            "tls: failed to verify certificate: x509: "
            "certificate is not valid for any names, but wanted to match web.example",
        ),
        (unverified(99, "odd"), "tls: failed to verify certificate: x509: odd"),
    ],
)
def test_why_there_is_no_connection(error: OSError, text: str) -> None:
    assert dial_problem(error, TARGET) == text


def test_why_a_connection_that_stood_is_gone() -> None:
    assert broken_connection(None) == "EOF"
    assert broken_connection(ConnectionResetError(errno.ECONNRESET, "x")) == "read: connection reset by peer"
    assert broken_connection(tls_error("BAD_CERTIFICATE")) == "remote error: tls: BAD_CERTIFICATE"


def test_an_address_of_version_6_stands_in_brackets() -> None:
    refused = OSError(errno.ECONNREFUSED, "x")
    assert dial_problem(refused, replace(TARGET, address="::1")) == "dial tcp [::1]:8443: connect: connection refused"


async def test_the_first_address_that_takes_a_connection_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target, tried = name_with_two_addresses(monkeypatch), []

    async def connect(place: Target) -> str:
        tried.append(place.connect_host)
        if place.connect_host == "192.0.2.1":
            raise ConnectionRefusedError(errno.ECONNREFUSED, "x")
        return place.connect_host

    assert await reach(target, connect) == "192.0.2.2"
    assert tried == ["192.0.2.1", "192.0.2.2"]


async def test_the_first_address_says_why_none_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    target = name_with_two_addresses(monkeypatch)

    async def connect(place: Target) -> str:
        raise OSError(errno.ECONNREFUSED if place.connect_host == "192.0.2.1" else errno.EHOSTUNREACH, "x")

    with pytest.raises(DialFailed, match=r"^dial tcp 192\.0\.2\.1:8443: connect: connection refused$"):
        await reach(target, connect)


async def test_all_addresses_together_have_the_time_of_the_target() -> None:
    async def connect(place: Target) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(DialFailed, match=r"^dial tcp 192\.0\.2\.7:8443: i/o timeout$"):
        await reach(replace(TARGET, timeout=0.01), connect)


def name_with_two_addresses(monkeypatch: pytest.MonkeyPatch) -> Target:
    async def resolved(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, port)) for address in ("192.0.2.1", "192.0.2.2")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    return replace(TARGET, address="")
