"""The flags of replicas: what goes together, and that the token is shown to nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.controlplane.certificates.issue import names_of
from pilothouse.controlplane.options.completion import CompletedOptions, InvalidOptions, complete
from pilothouse.controlplane.options.options import Options, shown_flags
from pilothouse.controlplane.options.replicas import JOIN_VARIABLE
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.shared_keys.source import are_in_the_store

ETCD = "--etcd-servers=http://127.0.0.1:2379"
TOKEN = "abcdef." + "0123456789abcdef" * 2


def options(*words: str) -> CompletedOptions:
    return complete(Options.parse(words))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([f"--join={TOKEN}"], "--join and --join-file need --etcd-servers"),
        ([ETCD, f"--join={TOKEN}", "--join-file=/dev/null"], "--join and --join-file can not be specified together"),
        ([ETCD, f"--join={TOKEN}", "--pki-dir=/x"], "--pki-dir has the shared keys"),
        ([ETCD, "--join-file=/nowhere"], "--join-file: no such file: /nowhere"),
        (["--pki-dir=/dev/null"], "--pki-dir: /dev/null is not a directory"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(words: list[str], problem: str) -> None:
    with pytest.raises(InvalidOptions) as refusal:
        options(*words).validate()
    assert problem in str(refusal.value)
    assert TOKEN not in str(refusal.value)


def test_the_token_is_shown_to_nobody() -> None:
    words = [ETCD, f"--join={TOKEN}"]
    assert options(*words).shown()["join"] == dict(shown_flags(words))["join"] == "<hidden>"
    assert options(ETCD).shown()["join"] == ""


def test_the_token_may_be_in_a_file_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert options(ETCD, f"--join-file={tmp_path / 'token'}").replicas.join_token == TOKEN
    monkeypatch.setenv(JOIN_VARIABLE, TOKEN)
    assert options(ETCD).replicas.join_token == TOKEN


def test_whoever_gives_the_keys_by_flags_shares_them_by_flags(tmp_path: Path) -> None:
    given = [f"--client-ca-file={tmp_path}/ca.crt", f"--service-account-signing-key-file={tmp_path}/sa.key"]
    assert are_in_the_store(options(ETCD))
    assert not are_in_the_store(options(ETCD, *given))
    assert are_in_the_store(options(ETCD, *given, f"--join={TOKEN}"))
    assert not are_in_the_store(options(ETCD, f"--pki-dir={tmp_path}"))
    assert not are_in_the_store(options())


def test_the_serving_certificate_is_for_the_names_of_a_load_balancer_too(tmp_path: Path) -> None:
    from cryptography import x509

    flags = [f"--data-dir={tmp_path}", "--apiserver-cert-extra-sans=api.example,192.0.2.10"]
    shown = Certificates.ensure(options(*flags)).own.serving_cert.read_bytes()
    names = names_of(x509.load_pem_x509_certificate(shown))
    assert "api.example" in names.dns
    assert "192.0.2.10" in names.ips
