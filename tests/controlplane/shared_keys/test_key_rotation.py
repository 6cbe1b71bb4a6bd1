"""The steps of a rotation: at each, all that was issued before the last retirement is believed."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.shared_keys.directory import RETIRED, SharedKeys, completed, read_keys, write_keys
from pilothouse.controlplane.shared_keys.rotation import KINDS, STEPS, RotationError, blocks, next_step


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> SharedKeys:
    return completed({}, tmp_path_factory.mktemp("keys"))


def after(keys: SharedKeys, kind: str, *steps: str) -> SharedKeys:
    for step in steps:
        keys = STEPS[step](keys, KINDS[kind])
    return keys


def shown(data_dir: Path, keys: SharedKeys) -> CertificatePaths:
    """The certificates of a server with these keys."""
    write_keys(keys, data_dir / "pki")
    return ensure_certificates(data_dir, bind_address="192.0.2.7")


def believes(ca: bytes, paths: CertificatePaths) -> bool:
    """Whether a client that goes by this CA connects to a server with these certificates."""
    client, server = ssl.create_default_context(cadata=ca.decode()), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(paths.serving_cert, paths.serving_key)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up, server_hostname="localhost"), server.wrap_bio(up, down, server_side=True)]
    try:
        for end in (*ends, *ends, *ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError:
        return False
    return ends[0].getpeercert() is not None


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_can_be_taken_in_their_order_only(fresh: SharedKeys, kind: str) -> None:
    keys, order = fresh, ["trust", "issue", "retire"]
    for step in order:
        assert next_step(keys, KINDS[kind]) == step
        for wrong in order:
            if wrong != step:
                with pytest.raises(RotationError, match=f"the next step is {step}, not {wrong}"):
                    after(keys, kind, wrong)
        keys = after(keys, kind, step)
    assert next_step(keys, KINDS[kind]) == "trust"
    assert all(keys[name] == content for name, content in fresh.items() if not name.startswith(KINDS[kind].trusted[:2]))


def test_a_client_that_knows_only_the_old_ca_believes_servers_until_it_is_retired(
    fresh: SharedKeys, tmp_path: Path
) -> None:
    old, heard = fresh["ca.crt"], []
    keys = fresh
    for step in ("trust", "issue", "retire"):
        keys = after(keys, "ca", step)
        heard.append((believes(old, shown(tmp_path, keys)), believes(keys["ca.crt"], shown(tmp_path, keys))))
    assert heard == [(True, True), (True, True), (True, True)], "the cross certificate stays with what was issued"
    assert not believes(old, shown(tmp_path / "new", keys))


def test_the_certificates_of_a_server_are_issued_anew_when_the_new_ca_issues(fresh: SharedKeys, tmp_path: Path) -> None:
    first = shown(tmp_path, fresh).admin_cert.read_bytes()
    trusted = after(fresh, "ca", "trust")
    assert shown(tmp_path, trusted).admin_cert.read_bytes() == first
    admin = x509.load_pem_x509_certificate(shown(tmp_path, after(trusted, "ca", "issue")).admin_cert.read_bytes())
    admin.verify_directly_issued_by(x509.load_pem_x509_certificates(trusted["ca.crt"])[1])


def test_what_is_retired_is_named(fresh: SharedKeys) -> None:
    keys = after(after(fresh, "ca", "trust", "issue", "retire"), "front-proxy", "trust", "issue", "retire")
    assert blocks(keys[RETIRED]) == [fresh["ca.crt"], fresh["front-proxy-ca.crt"]]
    assert len(blocks(keys["ca.crt"])) == len(blocks(keys["front-proxy-ca.crt"])) == 1
    assert not [name for name in keys if "next" in name or "cross" in name]


def test_a_server_that_was_away_for_the_whole_rotation_comes_back_with_the_new_keys(
    fresh: SharedKeys, tmp_path: Path
) -> None:
    shown(tmp_path, fresh)
    keys = after(after(fresh, "ca", "trust", "issue", "retire"), "service-account", "trust", "issue", "retire")
    assert believes(keys["ca.crt"], shown(tmp_path, keys))
    assert read_keys(tmp_path / "pki") == keys


def test_an_authority_whose_key_is_elsewhere_is_not_rotated_here(fresh: SharedKeys) -> None:
    with pytest.raises(RotationError, match=r"ca\.key is not here"):
        after({name: content for name, content in fresh.items() if name != "ca.key"}, "ca", "trust")
