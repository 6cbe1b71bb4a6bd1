"""`--cert-dir`: the serving certificate is kept where it says, and made there if it is missing."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.serving import Certificates
from pilothouse.testing import server


def certificates(tmp_path: Path) -> Certificates:
    arguments = [f"--data-dir={tmp_path / 'data'}", f"--cert-dir={tmp_path / 'certs'}"]
    return Certificates.ensure(complete(Options.parse(arguments)))


def test_a_pair_is_made_once_and_then_used(tmp_path: Path) -> None:
    first = certificates(tmp_path).files.serving
    assert (first.cert_file, first.key_file) == (
        tmp_path / "certs" / "apiserver.crt",
        tmp_path / "certs" / "apiserver.key",
    )
    assert first.key_file.stat().st_mode & 0o777 == 0o600
    made = first.cert_file.read_bytes()
    assert (certificates(tmp_path).files.serving.cert_file.read_bytes(), made.count(b"BEGIN CERTIFICATE")) == (made, 2)


def test_half_a_pair_is_refused(tmp_path: Path) -> None:
    certificates(tmp_path).files.serving.key_file.unlink()
    with pytest.raises(ValueError, match=r"could not read both .*apiserver.key is missing"):
        certificates(tmp_path)


async def test_a_server_shows_what_is_there(tmp_path: Path) -> None:
    async with server(cert_dir=str(tmp_path / "certs"), controllers="-*") as api, api.client() as client:
        assert (await client.get_json("/version"))["major"] == "1"
    ssl.create_default_context(cafile=str(tmp_path / "certs" / "apiserver.crt"))
