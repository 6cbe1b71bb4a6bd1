"""The two ConfigMaps that the server keeps in kube-system."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.kube.bootstrap import cluster_authentication_trust as trust
from pilothouse.kube.bootstrap import install as tracking
from pilothouse.machinery.objects import Json


def _ca(name: str, *, days: int = 10) -> str:
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    end = datetime.now(UTC) + timedelta(days=days)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(end - timedelta(days=100)).not_valid_after(end)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


class OwnCA:
    """A file with a CA."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.change()

    def change(self) -> None:
        self.pem = _ca("own")
        self.path.write_text(self.pem)


@pytest.fixture
def own_ca(tmp_path: Path) -> OwnCA:
    return OwnCA(tmp_path / "ca.crt")


async def _data(config_maps: OwnAccess, name: str) -> Json | None:
    found = await config_maps.get(name, namespace="kube-system")
    return None if found is None else found.get("data")


async def _write(config_maps: OwnAccess, name: str, data: Json) -> None:
    metadata = {"name": name, "namespace": "kube-system"}
    await config_maps.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})


def _trust(config_maps: OwnAccess, own_ca: OwnCA) -> trust.ClusterAuthenticationTrust:
    return trust.ClusterAuthenticationTrust(config_maps, trust.ClusterAuthenticationInfo([own_ca.path]))


async def test_extension_servers_can_read_whom_this_server_believes(config_maps: OwnAccess, own_ca: OwnCA) -> None:
    await _trust(config_maps, own_ca).sync()
    assert await _data(config_maps, trust.NAME) == {"client-ca-file": own_ca.pem}


async def test_what_other_servers_believe_stays_until_it_expires(config_maps: OwnAccess, own_ca: OwnCA) -> None:
    other, expired, own = _ca("other"), _ca("expired", days=-1), own_ca.pem
    written = {"client-ca-file": expired + own + other, "requestheader-client-ca-file": other}
    await _write(config_maps, trust.NAME, written)
    await _trust(config_maps, own_ca).sync()
    assert await _data(config_maps, trust.NAME) == written | {"client-ca-file": own + other}


async def test_a_new_ca_is_added_to_the_old_one(config_maps: OwnAccess, own_ca: OwnCA) -> None:
    old, controller = own_ca.pem, _trust(config_maps, own_ca)
    await controller.sync()
    own_ca.change()
    await controller.sync()
    assert await _data(config_maps, trust.NAME) == {"client-ca-file": old + own_ca.pem}


async def test_a_retired_ca_goes_whoever_has_written_it(config_maps: OwnAccess, own_ca: OwnCA, tmp_path: Path) -> None:
    other, gone, proxies = _ca("other"), _ca("gone"), _ca("proxies")
    await _write(
        config_maps, trust.NAME, {"client-ca-file": gone + other, "requestheader-client-ca-file": gone + proxies}
    )
    (tmp_path / "retired.crt").write_text(gone)
    own = trust.ClusterAuthenticationInfo([own_ca.path], [own_ca.path], retired=tmp_path / "retired.crt")
    await trust.ClusterAuthenticationTrust(config_maps, own).sync()
    data = await _data(config_maps, trust.NAME) or {}
    assert data["client-ca-file"] == other + own_ca.pem
    assert data["requestheader-client-ca-file"] == proxies + own_ca.pem


async def test_without_a_ca_there_is_nothing_to_say(config_maps: OwnAccess) -> None:
    await trust.ClusterAuthenticationTrust(config_maps, trust.ClusterAuthenticationInfo()).sync()
    assert await _data(config_maps, trust.NAME) is None


async def test_front_proxies_are_known_by_their_ca_their_names_and_their_headers(
    config_maps: OwnAccess, own_ca: OwnCA
) -> None:
    other = _ca("other")
    await _write(
        config_maps, trust.NAME, {"requestheader-client-ca-file": other, "requestheader-allowed-names": '["them"]'}
    )
    own = trust.ClusterAuthenticationInfo(front_proxy_cas=[own_ca.path], allowed_names=["us", "them"])
    await trust.ClusterAuthenticationTrust(config_maps, own).sync()
    assert await _data(config_maps, trust.NAME) == {
        "requestheader-allowed-names": '["them","us"]',
        "requestheader-client-ca-file": other + own_ca.pem,
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }


async def test_tracking_has_a_first_day_which_is_kept(config_maps: OwnAccess) -> None:
    day = [datetime(2026, 3, 1, tzinfo=UTC)]
    controller = tracking.LegacyTokenTracking(config_maps, clock=lambda: day[0])
    await controller.sync()
    day[0] += timedelta(days=1)
    await controller.sync()
    assert await _data(config_maps, tracking.NAME) == {"since": "2026-03-01"}


@pytest.mark.parametrize("wrong", ["", "yesterday", "20260301", "2026-02-30"])
async def test_what_is_no_day_is_put_right(config_maps: OwnAccess, wrong: str) -> None:
    await _write(config_maps, tracking.NAME, {"since": wrong, "more": "stays"})
    await tracking.LegacyTokenTracking(config_maps, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)).sync()
    assert await _data(config_maps, tracking.NAME) == {"since": "2026-03-01", "more": "stays"}


async def test_a_deleted_map_comes_back_after_half_an_hour(config_maps: OwnAccess) -> None:
    moment = [datetime(2026, 3, 1, tzinfo=UTC)]
    controller = tracking.LegacyTokenTracking(config_maps, clock=lambda: moment[0])
    await controller.sync()
    await config_maps.delete(tracking.NAME, namespace="kube-system")
    await controller.sync()
    assert await _data(config_maps, tracking.NAME) is None
    moment[0] += timedelta(minutes=30)
    await controller.sync()
    assert await _data(config_maps, tracking.NAME) == {"since": "2026-03-01"}
