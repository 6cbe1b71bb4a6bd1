"""`pilothouse serve` on a real etcd: it keeps the data, and its going makes the server unready."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from etcd_process import EtcdProcess, free_port
from patience import PATIENCE
from serving_process import ServeProcess, parsed, refused

from pilothouse.controlplane.errors import StartFailed
from pilothouse.controlplane.options.etcd import EtcdOptions
from pilothouse.controlplane.storage import open_etcd
from pilothouse.machinery.installation import extra_command


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    member = EtcdProcess(tmp_path / "etcd", options=["--log-level=error", "--unsafe-no-fsync"])
    member.start()
    yield member
    member.kill()


def test_an_etcd_that_goes_away_makes_the_server_unready(etcd: EtcdProcess, tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "data", f"--etcd-servers={etcd.url}", "--etcd-healthcheck-timeout=500ms")
    try:
        status, body = server.get("/api/v1/namespaces/default")
        assert (status, parsed(body)["metadata"]["name"]) == (200, "default")
        etcd.kill()
        both = b"[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n"
        while both not in body:  # the last answer is kept for a second, which may end between the two checks
            status, body = server.get("/readyz")
        assert status == 500
        assert server.get("/livez?exclude=etcd")[0] == 200
    finally:
        server.close()


def test_an_etcd_that_is_not_there_is_named(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    patience = "--storage-initialization-timeout=1s"
    outcome = refused("--data-dir", str(tmp_path), "--secure-port=0", f"--etcd-servers={url}", patience)
    assert outcome.returncode == 1
    assert url.removeprefix("http://") in outcome.stderr.splitlines()[-1]


def test_of_two_servers_on_one_etcd_one_runs_the_controllers_and_the_other_takes_over(
    etcd: EtcdProcess, tmp_path: Path
) -> None:
    flags = [
        f"--pki-dir={tmp_path / 'pki'}",
        "--leader-elect-lease-duration=8s",
        "--leader-elect-renew-deadline=4s",
        "--leader-elect-retry-period=100ms",
    ]
    first = ServeProcess(tmp_path / "first", f"--etcd-servers={etcd.url}", *flags)
    second = ServeProcess(tmp_path / "second", f"--etcd-servers={etcd.url}", *flags)
    try:
        assert second.get("/api/v1/namespaces", tls=first.tls())[0] == 200, "users of one are users of the other"
        leader = _leader(second, but="")
        first.signal(signal.SIGTERM)
        first.wait()
        assert _leader(second, but=leader)
    finally:
        first.close()
        second.close()


def _leader(server: ServeProcess, *, but: str) -> str:
    """Who leads, as soon as it is somebody else."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status, body = server.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager")
        holder = parsed(body)["spec"].get("holderIdentity") if status == 200 else ""
        if holder not in ("", but):
            return str(holder)
    raise AssertionError(f"nobody but {but!r} leads")


async def test_without_its_packages_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pilothouse.apiserver.storage.etcd.store", None)
    with pytest.raises(StartFailed, match=re.escape(extra_command("etcd"))):
        await open_etcd(EtcdOptions(), timeout=1)
