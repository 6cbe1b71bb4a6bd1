"""The address that the `kubernetes` service leads to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias

import pytest

from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.config import new_config
from pilothouse.controlplane.options.completion import complete, host_address
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.serving import Certificates
from pilothouse.kube.bootstrap.address import PublicAddress, kubernetes_service_ip


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await SqliteStore.open(tmp_path / "store")
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the certificates that a server has before it is configured."""
    folder = tmp_path_factory.mktemp("data")
    Certificates.ensure(complete(Options.parse([f"--data-dir={folder}"])))
    return folder


Address: TypeAlias = Callable[..., PublicAddress]


@pytest.fixture
def address(store: Store, data_dir: Path) -> Address:
    def configured(*flags: str) -> PublicAddress:
        return new_config(complete(Options.parse([*flags, f"--data-dir={data_dir}"])), store).kube.address

    return configured


async def test_it_is_the_one_that_is_advertised(address: Address) -> None:
    flags = ("--advertise-address=192.0.2.8", "--bind-address=0.0.0.0", "--secure-port=7443")
    assert str(address(*flags)) == "192.0.2.8:7443"
    assert str(address("--advertise-address=2001:db8::8")) == "[2001:db8::8]:6443"


async def test_it_is_the_hosts_own_where_the_server_listens_on_loopback(address: Address) -> None:
    assert address("--bind-address=127.0.0.1").ip == host_address()
    assert PublicAddress("127.0.0.1", 6443).is_loopback
    assert not PublicAddress("192.0.2.8", 6443).is_loopback


@pytest.mark.parametrize(
    ("cidr", "first"), [("10.0.0.0/24", "10.0.0.1"), ("10.0.0.7/24", "10.0.0.1"), ("fd00::/108", "fd00::1")]
)
def test_the_service_has_the_first_address_of_its_range(cidr: str, first: str) -> None:
    assert ip_address(kubernetes_service_ip(cidr)) == ip_address(first)
