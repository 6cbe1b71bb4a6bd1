"""The four commands of the scaffold, and then what the README that they wrote says, in a clean virtual environment."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import kubectl
import pytest
from kubectl import Kubectl
from offline_packages import offline_environment, show_dependencies, write_wheels
from running_command import RunningCommand

from pilothouse.client.blocking import BlockingClient
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.kinds.conditions import is_true

pytestmark = pytest.mark.slow

FLUNDER = {
    "apiVersion": "wardle.example.com/v1alpha1",
    "kind": "Flunder",
    "metadata": {"name": "a"},
    "spec": {"message": "hello"},
}
COMMANDS = [
    ("new", "resource", "v1alpha1/Flunder"),
    ("new", "controller", "Flunder"),
    ("new", "subresource", "Flunder/approve"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    _pilothouse(folder, "new", "server", "wardle", "--group", "wardle.example.com")
    for words in COMMANDS:
        _pilothouse(folder / "wardle", *words)
    return folder / "wardle"


@pytest.fixture(scope="module")
def environment(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("packages")
    write_wheels(folder / "wheels")
    show_dependencies(project / ".venv", folder / "links")
    return offline_environment(folder / "wheels", folder)


@pytest.mark.timeout(600)
def test_the_readme_leads_to_green_tests(project: Path, environment: dict[str, str]) -> None:
    _, test = _commands(project)
    done = subprocess.run(test, shell=True, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    assert (project / ".venv" / "bin" / "pilothouse").exists()


@pytest.mark.timeout(600)
def test_the_readme_leads_to_a_running_server(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    run, _ = _commands(project)
    with RunningCommand(run, project, tmp_path / "output", environment) as running:
        kubeconfig = Path(running.printed("export KUBECONFIG=(.*)"))
        url = running.printed("server +(https://.*)")
        with BlockingClient(load_kubeconfig(kubeconfig)) as client:
            flunders = client.resource("wardle.example.com/v1alpha1", "flunders", namespace="default")
            running.until(lambda: _is_available(client))
            flunders.create(FLUNDER)
            running.until(lambda: flunders.get("a").get("status", {}).get("ready"))
        if kubectl.BINARY:
            lines = Kubectl(kubeconfig, tmp_path)("get", "flunders").splitlines()
            assert [line.split()[:3] for line in lines] == [["NAME", "MESSAGE", "READY"], ["a", "hello", "true"]]
        running.interrupt()
    assert not (project / ".pilothouse").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))


def _commands(project: Path) -> list[str]:
    """Return the two commands of the README: to run it, and to run its tests."""
    found = re.findall(r"^```sh\n(.*?)\n```$", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == 2
    return found


def _is_available(client: BlockingClient) -> bool:
    services = client.resource("apiregistration.k8s.io/v1", "apiservices").items()
    return any(is_true(each, "Available") for each in services if each["spec"].get("group") == "wardle.example.com")


def _pilothouse(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pilothouse.cli.main", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
