"""What the controllers are told by the options: files of this server where none are given, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.controller_config import controller_config
from pilothouse.controlplane.options.completion import CompletedOptions, InvalidOptions, complete
from pilothouse.controlplane.options.options import Options


def options(folder: Path, *flags: str) -> CompletedOptions:
    return complete(Options.parse([f"--data-dir={folder}", *flags])).validate()


def refusal(folder: Path, *flags: str) -> str:
    with pytest.raises(InvalidOptions) as refused:
        options(folder, *flags)
    return str(refused.value)


async def test_the_servers_own_ca_is_published_and_signs_and_its_key_signs_tokens(tmp_path: Path) -> None:
    paths = ensure_certificates(tmp_path, bind_address="127.0.0.1")
    config = controller_config(options(tmp_path))
    assert config.root_ca == paths.ca_cert.read_bytes()
    assert (config.cluster_signing_cert_file, config.cluster_signing_key_file) == (paths.ca_cert, paths.ca_key)
    assert config.sign_token is not None
    assert (await config.sign_token({"sub": "x"})).count(".") == 2


def test_files_that_are_given_go_before_the_servers_own(tmp_path: Path) -> None:
    for name in ("root.crt", "ca.crt", "ca.key"):
        (tmp_path / name).write_text(name)
    signing = (f"--cluster-signing-cert-file={tmp_path}/ca.crt", f"--cluster-signing-key-file={tmp_path}/ca.key")
    config = controller_config(options(tmp_path, f"--root-ca-file={tmp_path}/root.crt", *signing))
    assert config.root_ca == b"root.crt"
    assert config.cluster_signing_cert_file == tmp_path / "ca.crt"
    assert config.cluster_signing_key_file == tmp_path / "ca.key"


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    assert refusal(tmp_path, "--root-ca-file=/missing") == "--root-ca-file: no such file: /missing"
    assert refusal(tmp_path, f"--cluster-signing-cert-file={tmp_path}/ca.crt") == (
        "cannot specify only one of --cluster-signing-cert-file and --cluster-signing-key-file"
    )
    assert refusal(tmp_path, "--cluster-signing-duration=0s") == "cluster-signing-duration must be greater than 0"
    assert refusal(tmp_path, "--concurrent-ttl-after-finished-syncs=0") == (
        "concurrent-ttl-after-finished-syncs must be greater than 0, but got 0"
    )
    assert refusal(tmp_path, "--legacy-service-account-token-clean-up-period=0s") == (
        "legacy-service-account-token-clean-up-period must be greater than 0"
    )
