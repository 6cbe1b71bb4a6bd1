"""Commands of the first hour, without anything that Windows does not have.

Each runs in a process on the double of tests/support/windows_double.py: no fcntl, no uvloop, no fork, no Unix sockets,
no signal handlers or readiness callbacks of event loops, no file modes, output in a code page.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubectl import BINARY, MISSING, Kubectl
from serving_process import ServeProcess
from windows_double import needs_linux, run, windows_python

pytestmark = needs_linux

SERVE = ("-m", "pilothouse.cli.main", "serve")
SUITE = """
def test_a_namespace_is_active(kube_client):
    space = kube_client.resource("v1", "namespaces").create({"metadata": {"name": "mine"}})
    assert space["status"]["phase"] == "Active"
"""
MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: größe}
data: {arrow: "→"}
"""


class _ServeProcess(ServeProcess):
    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.environment = windows_python(folder / "double")
        super().__init__(folder / "data", *flags)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_ServeProcess]:
    folder = tmp_path_factory.mktemp("windows")
    process = _ServeProcess(folder, "--workers=1")
    yield process
    process.close()


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_kubectl_creates_gets_watches_and_deletes(server: _ServeProcess, tmp_path: Path) -> None:
    kubectl = Kubectl(server.data_dir / "admin.kubeconfig", tmp_path)
    watch = kubectl.start("get", "configmaps", "--watch", "--output-watch-events", "--no-headers")
    assert watch.stdout is not None
    try:
        kubectl("create", "configmap", "web", "--from-literal=text=→")
        assert kubectl.json("get", "configmap", "web")["data"] == {"text": "→"}
        seen = [next(line.split()[0] for line in watch.stdout if " web " in line)]
        kubectl("delete", "configmap", "web")
        seen.append(next(line.split()[0] for line in watch.stdout if " web " in line))
    finally:
        watch.kill()
        watch.wait()
        watch.stdout.close()
    assert seen == ["ADDED", "DELETED"]


def test_a_second_server_on_the_same_directory_is_refused_and_told_who_has_it(server: _ServeProcess) -> None:
    second = run(server.folder / "double", [*SERVE, f"--data-dir={server.data_dir}", "--secure-port=0"])
    assert second.returncode == 1
    assert f"is in use by another pilothouse (pid {server.process.pid})" in second.stderr


def test_flags_that_need_another_system_are_refused_with_a_way_out(tmp_path: Path) -> None:
    refused = run(tmp_path, [*SERVE, f"--data-dir={tmp_path / 'data'}", "--workers=2", "--permit-port-sharing"])
    assert refused.returncode == 1
    assert "--workers 2: this system cannot fork processes that share sockets; use --workers 1" in refused.stderr
    assert "--permit-port-sharing: this system has no SO_REUSEPORT; run one server per port" in refused.stderr


def test_envtest_is_refused_with_a_way_out(tmp_path: Path) -> None:
    refused = run(tmp_path, ["-m", "pilothouse.cli.main", "envtest", "path"])
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.endswith("use pilothouse.testing\n")


def test_validate_reads_utf_8_and_prints_what_the_code_page_has(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(MANIFEST, encoding="utf-8")
    validated = run(tmp_path, ["-m", "pilothouse.cli.main", "validate", str(manifest)])
    assert validated.returncode == 1
    assert 'metadata.name: Invalid value: "größe"' in validated.stdout
    assert "EncodingWarning" not in validated.stderr


def test_the_pytest_plugin_gives_a_test_its_server(tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text(SUITE)
    options = ["-q", "-p", "no:cacheprovider", "-p", "pilothouse.testing.pytest_plugin", f"--rootdir={tmp_path}"]
    suite = run(tmp_path / "double", ["-m", "pytest", *options, str(tmp_path)])
    assert "1 passed" in suite.stdout, suite.stdout + suite.stderr


def test_a_ctrl_c_stops_the_server_in_good_order_and_the_data_is_there_again(server: _ServeProcess) -> None:
    """Last: it stops the server of the module."""
    server.signal(signal.SIGINT)
    assert server.wait() == 0, server.errors()
    said = server.errors()
    assert "Received SIGINT: stopping" in said
    assert "Traceback" not in said
    assert "EncodingWarning" not in said
    again = _ServeProcess(server.folder)
    try:
        assert again.get("/api/v1/namespaces/default")[0] == 200
    finally:
        again.close()
