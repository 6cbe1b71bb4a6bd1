"""`pilothouse pki` and `pilothouse join-token` beside data directories of servers that do not run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from pilothouse.cli.main import main
from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.shared_keys.directory import KeyDirectory, read_keys
from pilothouse.controlplane.shared_keys.rotation import blocks
from pilothouse.controlplane.shared_keys.source import settle


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    ensure_certificates(tmp_path / "data", bind_address="192.0.2.7")
    return tmp_path / "data"


def rotate(step: str, *flags: str, kind: str = "ca") -> int:
    return main(["pki", "rotate", kind, "--step", step, "--no-wait", *flags])


def test_what_is_shown_says_what_issues_and_what_comes_next(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rotate("trust", f"--data-dir={data_dir}") == 0
    assert main(["pki", "show", f"--data-dir={data_dir}"]) == 0
    shown = capsys.readouterr().out.partition(f"{data_dir / 'pki'}:\n")[2].splitlines()
    assert shown[0] == "ca: next step is issue"
    assert re.fullmatch(r"  issues   CN=kubernetes until 20\d\d-\d\d-\d\d, [0-9a-f]{16}", shown[1])
    assert shown[2].startswith("  trusted  CN=kubernetes-")
    assert shown[3] == "front-proxy: next step is trust"
    assert re.fullmatch(r"  issues   key [0-9a-f]{16}", shown[6])


def test_a_step_out_of_order_says_which_is_next(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rotate("retire", f"--data-dir={data_dir}", kind="service-account") == 1
    assert capsys.readouterr().err == "Error: the next step is trust, not retire\n"


def test_the_keys_of_a_shared_directory_are_changed_there(tmp_path: Path) -> None:
    shared, data_dir = tmp_path / "shared", tmp_path / "data"
    asyncio.run(settle(KeyDirectory(shared), data_dir))
    assert rotate("trust", f"--data-dir={data_dir}") == 0
    assert len(blocks(read_keys(shared)["ca.crt"])) == 2
    assert rotate("issue", f"--pki-dir={shared}") == 0
    asyncio.run(settle(KeyDirectory(shared), data_dir))
    assert read_keys(data_dir / "pki") == read_keys(shared)


def test_keys_that_are_in_etcd_are_not_changed_elsewhere(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data_dir / "cluster.key").write_bytes(bytes(32))
    assert rotate("trust", f"--data-dir={data_dir}") == 1
    assert capsys.readouterr().err == "Error: the keys of this cluster are in etcd: name the etcd with --etcd-servers\n"


def test_where_there_are_no_keys_none_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["show"], ["rotate", "ca", "--step=trust"]):
        assert main(["pki", *words, f"--pki-dir={tmp_path / 'nowhere'}"]) == 1
        assert f"there are no shared keys in {tmp_path / 'nowhere'}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_token_can_be_had_before_any_server_runs(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["join-token", "--generate"]) == 0
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{32}\n", capsys.readouterr().out)
    assert main(["join-token", f"--data-dir={data_dir}"]) == 1
    assert "has no join token: name the data directory of a server with its keys in etcd" in capsys.readouterr().err
