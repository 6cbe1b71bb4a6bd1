"""What the flags about service accounts make of the keys, the issuers and the audiences."""

from __future__ import annotations

from pathlib import Path

import pytest
from service_account_tokens import write_key

from pilothouse.controlplane.authentication.setup import service_account_config
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.kube.config import ServiceAccountConfig


def config(folder: Path, line: str = "") -> ServiceAccountConfig:
    return service_account_config(complete(Options.parse(f"--data-dir {folder} {line}".split())))


def test_the_key_in_the_data_directory_signs_and_is_not_read_until_it_is_needed(tmp_path: Path) -> None:
    made = config(tmp_path)
    assert made.signing_key_file == tmp_path / "pki" / "sa.key"
    assert made.verifying_files == (tmp_path / "pki" / "sa.pub",)
    assert made.issuers == made.audiences == ("https://kubernetes.default.svc",)
    assert made.extend_expiration


def test_own_tokens_are_believed_beside_those_of_given_keys(tmp_path: Path) -> None:
    given = write_key(tmp_path / "given")
    made = config(tmp_path, f"--service-account-key-file={given}")
    assert made.verifying_files == (given, tmp_path / "pki" / "sa.pub")


def test_given_keys_replace_the_own_one(tmp_path: Path) -> None:
    signing, given = write_key(tmp_path / "signing"), write_key(tmp_path / "given")
    made = config(tmp_path, f"--service-account-signing-key-file={signing} --service-account-key-file={given}")
    assert (made.signing_key_file, made.verifying_files) == (signing, (given,))
    assert config(tmp_path, f"--service-account-signing-key-file={signing}").verifying_files == (signing,)


@pytest.mark.parametrize("flag", ["service-account-signing-key-file", "service-account-key-file"])
def test_a_given_file_must_hold_a_key(flag: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="does not contain a"):
        config(tmp_path, f"--{flag}={tmp_path / 'empty'}")


def test_issuers_are_the_audiences_unless_those_are_given(tmp_path: Path) -> None:
    made = config(tmp_path, "--service-account-issuer=https://a --service-account-issuer=b")
    assert made.issuers == made.audiences == ("https://a", "b")
    assert config(tmp_path, "--api-audiences=api,vault").audiences == ("api", "vault")
