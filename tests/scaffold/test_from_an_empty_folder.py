"""The four commands of the scaffold, and then what the README that they wrote says, in a clean virtual environment."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import kubectl
import pytest
from kubectl import Kubectl
from offline_packages import offline_environment, show_dependencies, write_backend, write_wheel
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
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An offline machine, whose packages for pip do not include pilothouse."""
    folder = tmp_path_factory.mktemp("packages")
    write_backend(folder / "index")
    return offline_environment(folder / "index", folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wheel(tmp_path_factory.mktemp("wheel") / "dist")


@pytest.fixture(scope="module")
def project(wheel: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that a pilothouse creates that was installed from the wheel."""
    folder = tmp_path_factory.mktemp("empty")
    show_dependencies(folder / "tools", folder / "links-of-tools")
    show_dependencies(folder / "wardle" / ".venv", folder / "links")
    install = f"python3 -m venv tools && tools/bin/pip install {wheel}"
    _run(install, folder, environment)
    _run("tools/bin/pilothouse new server wardle --group wardle.example.com", folder, environment)
    for words in COMMANDS:
        _run(" ".join(("../tools/bin/pilothouse", *words)), folder / "wardle", environment)
    return folder / "wardle"


@pytest.mark.timeout(600)
def test_the_readme_leads_to_green_tests(project: Path, environment: dict[str, str]) -> None:
    _, test, _ = _commands(project)
    assert "5 passed" in _run(test, project, environment)
    assert (project / ".venv" / "bin" / "pilothouse").exists()


@pytest.mark.timeout(600)
def test_the_readme_leads_to_a_running_server(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    run, _, _ = _commands(project)
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
    """Return the commands of the README: to run it, to run its tests, and to build its image."""
    found = re.findall(r"^```sh\n(.*?)\n```$", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == 3
    return found


def _is_available(client: BlockingClient) -> bool:
    services = client.resource("apiregistration.k8s.io/v1", "apiservices").items()
    return any(is_true(each, "Available") for each in services if each["spec"].get("group") == "wardle.example.com")


@pytest.mark.timeout(600)
def test_the_image_has_the_wheel_of_which_the_readme_speaks(
    project: Path, wheel: Path, environment: dict[str, str]
) -> None:
    _, test, build = _commands(project)
    assert str(wheel) in test
    fetch, _, docker = build.partition(" && ")
    _run(f"python3 -m venv .venv && {fetch}", project, environment)
    assert docker == "docker build -t wardle-apiserver ."
    (source,) = (project / "wheels").glob("pilothouse-*.whl")
    assert source.name == wheel.name
    assert "RUN pip install --no-cache-dir wheels/pilothouse-*.whl .\n" in (project / "Dockerfile").read_text()
    assert "!wheels/\n" in (project / ".dockerignore").read_text()


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
