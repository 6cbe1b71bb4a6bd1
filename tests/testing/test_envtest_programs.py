"""The programs in the folder for envtest, each by itself: flags, ports, signals, exit codes, which etcd is real."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from envtest_steps import Etcd, KubeAPIServer, Program, envtest_folder, has_flag
from etcd_process import EtcdProcess, free_port

from pilothouse.client import BlockingClient, load_kubeconfig
from pilothouse.controllers.table import enabled
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.machinery import release
from pilothouse.testing.envtest.api_server import CONTROLLERS, options_for_envtest
from pilothouse.testing.envtest.etcd import UsageError, read_flags
from pilothouse.testing.envtest.store_place import SECRET_FILE, SECRET_HEADER, STORE_HEADER


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return envtest_folder(tmp_path_factory.mktemp("assets"))


@pytest.fixture
def etcd(assets: Path, tmp_path: Path) -> Iterator[tuple[Etcd, Program]]:
    etcd = Etcd(assets, tmp_path)
    program = etcd.start()
    yield etcd, program
    assert program.stop() == 0


def test_kubectl_is_that_of_the_machine(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "kubectl").write_text("#!/bin/sh\necho mine\n")
    (bin_ / "kubectl").chmod(0o755)
    folder = tmp_path / "assets"
    for _ in range(2):  # the second time the folder's own is found first
        envtest_folder(folder, PATH=f"{folder}:{bin_}")
        assert subprocess.check_output([folder / "kubectl"], text=True) == "mine\n"


def test_without_kubectl_a_script_says_how_to_get_it(tmp_path: Path) -> None:
    envtest_folder(tmp_path / "assets", PATH=str(tmp_path))
    done = subprocess.run([tmp_path / "assets" / "kubectl", "get", "ns"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "https://kubernetes.io/docs/tasks/tools/" in done.stderr


def test_the_help_has_the_flags_that_envtest_looks_for(assets: Path) -> None:
    assert has_flag(assets / "etcd", "unsafe-no-fsync")
    assert has_flag(assets / "kube-apiserver", "insecure-port")  # so it is given, as 0, which is off
    assert not has_flag(assets / "kube-apiserver", "sail")


def test_the_version_is_kube_apiservers(assets: Path) -> None:
    assert (
        subprocess.check_output([assets / "kube-apiserver", "--version"], text=True)
        == f"Kubernetes {release.RELEASES[release.DEFAULT].git_version}\n"
    )


def test_a_folder_has_the_version_that_it_was_written_for(tmp_path: Path) -> None:
    words = ("envtest", "path", "--kubernetes-version", "1.35")
    command = [sys.executable, "-m", "pilothouse.cli.main", *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    folder = Path(subprocess.check_output(command, text=True, env=environment).strip())
    assert folder.parent == tmp_path / "pilothouse" / "envtest"
    assert subprocess.check_output([folder / "kube-apiserver", "--version"], text=True) == "Kubernetes v1.35.8\n"


@pytest.mark.parametrize(
    ("program", "words", "code", "message"),
    [
        ("kube-apiserver", ["--sail"], 1, "Error: unknown flag: --sail"),
        ("etcd", ["sail"], 2, "Error: 'sail' is not a valid flag"),
        (
            "etcd",
            ["--listen-client-urls=https://localhost:1"],
            2,
            "Error: --listen-client-urls: https://localhost:1 is",
        ),
    ],
)
def test_a_bad_command_line_is_an_error(assets: Path, program: str, words: list[str], code: int, message: str) -> None:
    done = subprocess.run([assets / program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(message)


def test_etcd_holds_its_ports_until_it_is_told_to_end(assets: Path, etcd: tuple[Etcd, Program], tmp_path: Path) -> None:
    first, program = etcd
    with urlopen(f"{first.url}/health") as answer:
        assert answer.read() == b'{"health":"true","reason":""}'
    for taken in (first.url, first.peer_url):
        other = f"http://127.0.0.1:{free_port()}"
        urls = ["--listen-client-urls", taken, "--listen-peer-urls", other]
        second = Program(assets / "etcd", [*urls, "--data-dir", str(tmp_path / "second")], tmp_path / "second.log")
        assert second.process.wait() == 1
        assert "Address already in use" in second.log.read_text()
    assert program.stop(signal.SIGINT) == 0
    for url in (first.url, first.peer_url):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) != 0


def test_flags_of_etcd_may_have_one_dash_and_stand_apart_from_their_values() -> None:
    words = [
        "-data-dir",
        "/tmp/d",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=5",
        "--listen-peer-urls",
        "http://[::1]:1",
    ]
    flags = read_flags(words, {"ETCD_LISTEN_CLIENT_URLS": "http://localhost:7,http://127.0.0.2:8", "ETCD_NAME": "x"})
    assert [url.port for url in (*flags.client_urls, *flags.peer_urls)] == [7, 8, 1]
    assert flags.data_dir == Path("/tmp/d")
    assert read_flags(["--name=boat"], {}).data_dir == Path.cwd() / "boat.etcd"
    with pytest.raises(UsageError):
        read_flags(["--listen-peer-urls=localhost:1"], {})


def test_a_server_that_was_killed_finds_its_objects_again(
    assets: Path, etcd: tuple[Etcd, Program], tmp_path: Path
) -> None:
    """The objects are where etcd is told to keep them: they end with that folder, however the server ended."""
    server = KubeAPIServer(assets, tmp_path, etcd[0].url)
    config = load_kubeconfig(server.add_user("default", "system:masters"))
    first = server.start()
    with BlockingClient(config) as client:
        client.resource("v1", "namespaces").create({"metadata": {"name": "kept"}})
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    second = server.start()
    with BlockingClient(config) as client:
        assert client.resource("v1", "namespaces").get("kept")["metadata"]["name"] == "kept"
    assert second.stop() == 0
    assert {path.name for path in server.cert_dir.iterdir() if path.suffix in (".crt", ".key")} == {
        *("apiserver.crt", "apiserver.key", "client-cert-auth-ca.crt", "sa-signer.crt", "sa-signer.key")
    }


def test_a_real_etcd_is_used_as_one(tmp_path: Path) -> None:
    etcd = EtcdProcess(tmp_path)
    etcd.start()
    try:
        options = options_for_envtest(Options.parse([f"--etcd-servers={etcd.url}"]), tmp_path / "scratch")
    finally:
        etcd.kill()
    assert options.etcd.servers == (etcd.url,)
    assert options.pilothouse.data_dir == str(tmp_path / "scratch")


def test_servers_with_other_prefixes_do_not_meet(etcd: tuple[Etcd, Program], tmp_path: Path) -> None:
    stand_in = f"--etcd-servers={etcd[0].url}"
    parsed = (Options.parse([stand_in, f"--etcd-prefix={name}"]) for name in ("/registry", "/a/b", "/a_b"))
    homes = {options_for_envtest(options, tmp_path).pilothouse.data_dir for options in parsed}
    assert homes == {str(etcd[0].data_dir / "pilothouse" / name) for name in ("registry", "a%2Fb", "a_b")}


def test_a_stranger_on_the_port_does_not_choose_where_objects_go(
    etcd: tuple[Etcd, Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    options = options_for_envtest(Options.parse([f"--etcd-servers={etcd[0].url}"]), tmp_path)
    assert options.etcd.servers == (etcd[0].url,)


@pytest.mark.parametrize("secret", ["", "guessed", None], ids=["none", "wrong", "of a folder without one"])
def test_a_stranger_does_not_choose_among_our_own_folders(tmp_path: Path, secret: str | None) -> None:
    """Somebody else on this machine was faster than etcd, and names a folder of the user who tests."""
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    if secret is not None:
        (ours / SECRET_FILE).write_text("random")

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header(STORE_HEADER, str(ours))
            self.send_header(SECRET_HEADER, secret or "")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        threading.Thread(target=stranger.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{stranger.server_port}"
        options = options_for_envtest(Options.parse([f"--etcd-servers={url}"]), tmp_path / "scratch")
    assert (options.etcd.servers, options.pilothouse.data_dir) == ((url,), str(tmp_path / "scratch"))


def test_controllers_can_be_asked_for_and_left_out() -> None:
    def running(*words: str) -> set[str]:
        chosen = complete(options_for_envtest(Options.parse(words), Path("/nowhere"))).controllers
        names = {each.name for each in enabled(chosen.controllers)}
        return names | {"scheduler"} if chosen.scheduler else names

    assert running() == {*CONTROLLERS}
    assert running("--scheduler", "--controllers=job-controller") == {*CONTROLLERS, "scheduler", "job-controller"}
    assert running("--controllers=-serviceaccount-controller") == {*CONTROLLERS} - {"serviceaccount-controller"}
    assert running("--controllers=*") > {*CONTROLLERS, "scheduler", "deployment-controller"}
    assert running("--controllers=-*") == set()
