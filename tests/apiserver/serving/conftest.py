from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from pilothouse.apiserver.http1.parser import VARIABLE
from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.certificates.paths import CertificatePaths


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The server must do without uvloop where that is not installed."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture(params=["zttp", "python"])
def each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers read HTTP/1.1 with either parser."""
    monkeypatch.setenv(VARIABLE, request.param)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> CertificatePaths:
    return ensure_certificates(tmp_path_factory.mktemp("data"), bind_address="127.0.0.1")
