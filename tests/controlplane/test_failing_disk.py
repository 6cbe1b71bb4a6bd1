"""A server whose disk fails: writes are refused, reads and watches go on, and all is well again when the disk is."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving_process import ServeProcess, refused
from traced_calls import NO_STRACE, can_trace
from whole_server import CONFIG_MAPS, create_config_map, whole_server

_ATTACHED = b"attached"


@pytest.fixture(scope="module", name="served")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """No controller writes beside the test."""
    server = ServeProcess(tmp_path_factory.mktemp("served") / "data", "--controllers=-*", "--workers=1")
    try:
        yield server
    finally:
        server.close()


@contextmanager
def failing(server: ServeProcess, *faults: str) -> Iterator[None]:
    """While it is entered, system calls of the server fail: `pwrite64:error=EIO`."""
    injected = [word for fault in faults for word in ("-e", f"inject={fault}")]
    calls = ",".join(fault.partition(":")[0] for fault in faults)
    command = ["strace", "-f", "-o", "/dev/null", "-p", str(server.process.pid), "-e", f"trace={calls}", *injected]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as strace:
        assert strace.stderr is not None
        try:
            assert _ATTACHED in strace.stderr.readline()
            yield
        finally:
            strace.terminate()


def _create(server: ServeProcess, name: str) -> tuple[int, Any]:
    connection = server.connect()
    body = json.dumps({"metadata": {"name": name}})
    connection.request("POST", CONFIG_MAPS, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def _names(server: ServeProcess) -> set[str]:
    status, body = server.get(CONFIG_MAPS)
    assert status == 200
    return {item["metadata"]["name"] for item in json.loads(body)["items"]}


def _watch(server: ServeProcess, version: str) -> http.client.HTTPResponse:
    connection = server.connect()
    connection.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
    return connection.getresponse()


def _until_ready(server: ServeProcess, status: int) -> None:
    """The store is asked how it is once in a second."""
    last = time.monotonic() + 60
    while server.get("/readyz")[0] != status:
        assert time.monotonic() < last
        time.sleep(0.05)


FAULTS = {
    "no-space": ["pwrite64:error=ENOSPC"],
    "write-error": ["pwrite64:error=EIO"],
    "sync-error": ["fdatasync:error=EIO"],
    "read-only": ["pwrite64:error=EROFS", "ftruncate:error=EROFS"],
}


@pytest.mark.skipif(not can_trace(), reason=NO_STRACE)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_outlives_a_disk_that_takes_nothing(served: ServeProcess, fault: str) -> None:
    status, before = _create(served, f"before-{fault}")
    assert status == 201
    watch = _watch(served, before["metadata"]["resourceVersion"])
    with failing(served, *FAULTS[fault]):
        for _ in range(3):
            status, refusal = _create(served, f"failed-{fault}")
            assert (status, refusal["message"]) == (500, "Internal error occurred: the storage is unavailable")
        assert f"failed-{fault}" not in _names(served)
        assert f"before-{fault}" in _names(served)
        _until_ready(served, 500)
    status, _ = _create(served, f"after-{fault}")
    assert status == 201
    assert json.loads(watch.readline())["object"]["metadata"]["name"] == f"after-{fault}"
    _until_ready(served, 200)
    assert f"failed-{fault}" not in _names(served)


async def test_a_damaged_object_is_refused_by_its_key_and_all_others_are_served(tmp_path: Path) -> None:
    async with whole_server(tmp_path / "data") as api:
        for name in ("good", "bad"):
            await create_config_map(api, name, data={"text": f"this is {name}"})
    file = tmp_path / "data/store/store.db"
    file.write_bytes(file.read_bytes().replace(b"this is bad", b"this is b\x00d"))
    async with whole_server(tmp_path / "data") as api:
        refusal = await api.request("GET", f"{CONFIG_MAPS}/bad")
        assert refusal.status == 500
        assert "the stored value of /registry/configmaps/default/bad is damaged" in refusal.json["message"]
        assert (await api.request("GET", f"{CONFIG_MAPS}/good")).json["data"] == {"text": "this is good"}
        listed = await api.request("GET", CONFIG_MAPS)
        assert (listed.status, listed.json["message"]) == (500, refusal.json["message"])
        assert (await api.request("GET", "/api/v1/namespaces/kube-system/configmaps")).status == 200
        assert (await api.request("DELETE", f"{CONFIG_MAPS}/bad")).status == 500
        created = await create_config_map(api, "new")
        assert (await api.request("GET", f"{CONFIG_MAPS}/new")).json == created
        assert (await api.request("GET", "/api/v1/namespaces")).status == 200


def test_a_server_says_why_it_cannot_start_on_a_read_only_disk(tmp_path: Path) -> None:
    mounted = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount file systems")
    try:
        outcome = refused(f"--data-dir={tmp_path / 'data'}")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert outcome.returncode != 0
    assert "Read-only file system" in outcome.stderr
    assert "Traceback" not in outcome.stderr
