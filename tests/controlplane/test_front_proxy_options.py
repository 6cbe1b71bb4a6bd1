"""What the flags about front proxies and Services come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.apiserver.webhook.service_resolver import ServiceAddress
from pilothouse.controlplane.certificates.ensure import FRONT_PROXY_CLIENT
from pilothouse.controlplane.generic_config import build_service_resolver
from pilothouse.controlplane.options.completion import CompletedOptions, InvalidOptions, complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.serving import FrontProxy, front_proxy
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.core.services.resolver import (
    ClusterIPResolver,
    EndpointFirstResolver,
    EndpointResolver,
    LoopbackResolver,
)
from pilothouse.kube.registries import Registries


def _options(folder: Path, *flags: str) -> CompletedOptions:
    return complete(Options.parse([f"--data-dir={folder}", *flags]))


def _proxy(folder: Path, *flags: str) -> FrontProxy:
    return front_proxy(_options(folder, *flags))


def test_without_flags_the_data_directory_has_all_that_is_needed(tmp_path: Path) -> None:
    proxy = _proxy(tmp_path)
    assert proxy.client.cert_file == tmp_path / "pki" / "front-proxy-client.crt"
    assert proxy.cas == (tmp_path / "pki" / "front-proxy-ca.crt",)
    assert (proxy.allowed_names, proxy.headers) == ((FRONT_PROXY_CLIENT,), STANDARD)


def test_another_ca_stands_beside_our_own(tmp_path: Path) -> None:
    flags = ["--requestheader-client-ca-file=/ca", "--requestheader-allowed-names=a", "--requestheader-group-headers=G"]
    proxy = _proxy(tmp_path, *flags)
    assert proxy.cas == (tmp_path / "pki" / "front-proxy-ca.crt", Path("/ca"))
    assert proxy.allowed_names == (FRONT_PROXY_CLIENT, "a")
    assert proxy.headers == RequestHeaders(username=(), uid=(), group=("G",), extra_prefix=())
    assert _proxy(tmp_path, flags[0]).allowed_names == ()


def test_with_a_client_certificate_of_their_own_flags_mean_what_they_say(tmp_path: Path) -> None:
    pair = ["--proxy-client-cert-file=/c", "--proxy-client-key-file=/k"]
    proxy = _proxy(tmp_path, *pair, "--requestheader-username-headers=U")
    assert (proxy.cas, proxy.allowed_names) == ((), ())
    assert (proxy.headers.username, proxy.headers.group) == (("U",), ())
    assert proxy.client.key_file == Path("/k")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--proxy-client-cert-file=/dev/null"], "--proxy-client-cert-file and --proxy-client-key-file must be"),
        (["--requestheader-allowed-names= "], 'empty value in "requestheader-allowed-names"'),
        (["--requestheader-uid-headers=X-Uid"], "--requestheader-uid-headers is set without specifying the standard"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(tmp_path: Path, flags: list[str], problem: str) -> None:
    with pytest.raises(InvalidOptions, match=problem):
        _options(tmp_path, *flags).validate()


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ([], EndpointFirstResolver),
        (["--enable-aggregator-routing"], EndpointResolver),
        (["--enable-aggregator-routing=false"], ClusterIPResolver),
    ],
)
async def test_services_are_reached_as_the_flag_says(tmp_path: Path, flags: list[str], kind: type[object]) -> None:
    store = await SqliteStore.open(tmp_path / "store")
    resolver = build_service_resolver(
        _options(tmp_path, *flags, "--bind-address=0.0.0.0"), Registries(store), PublicAddress("192.0.2.1", 6443)
    )
    assert isinstance(resolver, LoopbackResolver)
    assert type(resolver.delegate) is kind
    assert await resolver.resolve("default", "kubernetes", 443) == ServiceAddress("127.0.0.1", 6443)
    await store.close()
