from __future__ import annotations

import base64
import json
import os
import ssl
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from pilothouse.controlplane.certificates import issue
from pilothouse.controlplane.certificates.ensure import ensure_certificates, write_kubeconfig
from pilothouse.controlplane.certificates.paths import CertificateError, CertificatePaths


def ensure(data_dir: Path, bind_address: str = "192.0.2.7", hostnames: tuple[str, ...] = ()) -> CertificatePaths:
    return ensure_certificates(data_dir, bind_address=bind_address, hostnames=hostnames, service_ip="10.0.0.1")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def contents(paths: CertificatePaths) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths.files}


def test_everything_is_made_and_laid_out_as_kubeadm_does(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    assert {path.name for path in paths.files} >= {
        "ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "front-proxy-ca.crt", "front-proxy-client.crt",
        "sa.key", "sa.pub",
    }  # fmt: skip
    assert all(path.parent == tmp_path / "pki" for path in paths.files)


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    for path in ensure(tmp_path).files:
        expected = 0o600 if path.suffix == ".key" else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_the_serving_certificate_has_every_name_of_the_server(tmp_path: Path) -> None:
    names = issue.names_of(certificate(ensure(tmp_path, hostnames=("api.example", "198.51.100.1")).serving_cert))
    assert names.dns >= {
        "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local", "api.example",
    }  # fmt: skip
    assert names.ips == {"127.0.0.1", "::1", "10.0.0.1", "192.0.2.7", "198.51.100.1"}


def test_each_certificate_is_for_its_purpose_and_by_its_authority(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    admin = certificate(paths.admin_cert)
    assert admin.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    for path, authority, purpose in (
        (paths.serving_cert, paths.ca_cert, ExtendedKeyUsageOID.SERVER_AUTH),
        (paths.admin_cert, paths.ca_cert, ExtendedKeyUsageOID.CLIENT_AUTH),
        (paths.front_proxy_client_cert, paths.front_proxy_ca_cert, ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        found = certificate(path)
        found.verify_directly_issued_by(certificate(authority))
        assert list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [purpose]


def test_the_service_account_keys_belong_together(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    private = load_pem_private_key(paths.service_account_key.read_bytes(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert load_pem_public_key(paths.service_account_public_key.read_bytes()) == private.public_key()


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    before = contents(ensure(tmp_path))
    assert contents(ensure(tmp_path)) == before


def test_a_restart_does_not_load_the_library_that_makes_certificates(tmp_path: Path) -> None:
    ensure(tmp_path)
    script = (
        "import sys; from pathlib import Path\n"
        "from pilothouse.controlplane.certificates.ensure import ensure_certificates\n"
        f"ensure_certificates(Path({str(tmp_path)!r}), bind_address='192.0.2.7')\n"
        "print('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "127.0.0.1"])
def test_an_address_without_a_name_of_its_own_needs_no_new_certificate(tmp_path: Path, address: str) -> None:
    before = contents(ensure(tmp_path))
    assert contents(ensure(tmp_path, address)) == before


def test_a_new_bind_address_renews_the_serving_certificate_only(tmp_path: Path) -> None:
    before = contents(ensure(tmp_path))
    paths = ensure(tmp_path, "192.0.2.8")
    changed = {name for name, content in contents(paths).items() if content != before[name]}
    assert changed == {"apiserver.crt", "apiserver.key"}
    assert "192.0.2.8" in issue.names_of(certificate(paths.serving_cert)).ips


def test_certificates_near_their_end_are_renewed_and_authorities_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue, "LEAF_LIFE", issue.RENEW_BEFORE - timedelta(hours=1))
    before = contents(ensure(tmp_path))
    monkeypatch.undo()
    changed = {name for name, content in contents(ensure(tmp_path)).items() if content != before[name]}
    assert changed == {
        "apiserver.crt", "apiserver.key", "admin.crt", "admin.key", "front-proxy-client.crt", "front-proxy-client.key",
    }  # fmt: skip


@pytest.mark.parametrize("missing", [path.name for path in CertificatePaths.under(Path()).files])
def test_whatever_is_missing_is_made_again_so_that_it_fits(tmp_path: Path, missing: str) -> None:
    before = contents(ensure(tmp_path))
    (tmp_path / "pki" / missing).unlink()
    if missing in ("ca.key", "front-proxy-ca.key"):
        assert ensure(tmp_path).ca_cert.read_bytes() == before["ca.crt"]
        return
    paths = ensure(tmp_path)
    for cert, key, authority in (
        (paths.serving_cert, paths.serving_key, paths.ca_cert),
        (paths.admin_cert, paths.admin_key, paths.ca_cert),
        (paths.front_proxy_client_cert, paths.front_proxy_client_key, paths.front_proxy_ca_cert),
    ):
        certificate(cert).verify_directly_issued_by(certificate(authority))
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    after = contents(paths)
    untouched = {name for name in before if name.rpartition(".")[0] != missing.rpartition(".")[0]}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


def test_an_authority_without_its_key_cannot_issue(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    paths.ca_key.unlink()
    ensure(tmp_path)
    with pytest.raises(CertificateError, match=r"apiserver\.crt must be issued anew"):
        ensure(tmp_path, "192.0.2.8")


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    paths.ca_key.write_bytes(paths.front_proxy_ca_key.read_bytes())
    with pytest.raises(CertificateError, match=r"is not the key of"):
        ensure(tmp_path)


def test_what_is_no_certificate_is_not_overwritten(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    paths.ca_cert.write_text("my shopping list")
    with pytest.raises(CertificateError, match="is no certificate"):
        ensure(tmp_path)
    assert paths.ca_cert.read_text() == "my shopping list"


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"renewAfter": "soon"})])
def test_a_damaged_record_costs_a_look_at_the_files_and_nothing_else(tmp_path: Path, content: str) -> None:
    before = contents(ensure(tmp_path))
    (tmp_path / "pki" / "issued.json").write_text(content)
    assert contents(ensure(tmp_path)) == before


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    paths = ensure(tmp_path)
    assert set(os.listdir(paths.directory)) == {path.name for path in paths.files} | {"issued.json"}


def test_the_kubeconfig_holds_everything_and_is_for_its_owner_only(tmp_path: Path) -> None:
    paths, file = ensure(tmp_path), tmp_path / "admin.kubeconfig"
    write_kubeconfig(
        file, server_url="https://127.0.0.1:6443", ca=paths.ca_cert, cert=paths.admin_cert, key=paths.admin_key
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    config = yaml.safe_load(file.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == paths.ca_cert.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == paths.admin_cert.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == paths.admin_key.read_bytes()
    assert config["current-context"] == config["contexts"][0]["name"]


def test_a_kubeconfig_that_would_not_change_is_left_alone(tmp_path: Path) -> None:
    paths, file = ensure(tmp_path), tmp_path / "admin.kubeconfig"
    inodes = []
    for url in ("https://a:1", "https://a:1", "https://b:1"):
        write_kubeconfig(file, server_url=url, ca=paths.ca_cert, cert=paths.admin_cert, key=paths.admin_key)
        inodes.append((file.stat().st_ino, file.stat().st_mtime_ns))
    assert inodes[0] == inodes[1] != inodes[2]
