"""`pilothouse dev`: a server that follows its files, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE
from running_command import RunningCommand

from pilothouse.cli.main import main
from pilothouse.client.blocking import BlockingClient
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.scaffold.developing import Reloader, changes, snapshot
from pilothouse.scaffold.names import parse_kind
from pilothouse.scaffold.new import new_resource, new_server
from pilothouse.scaffold.project import Project, find_project
from pilothouse.testing import BlockingAPI, Server

DEV = [sys.executable, "-m", "pilothouse.cli.main", "dev"]
GROUP = "wardle.example.com"
PROGRAM = """
import signal, sys, time
with open("log", "a") as log:
    print("{word}", file=log)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    new_server(tmp_path / "project", GROUP)
    project = find_project(tmp_path / "project")
    new_resource(project, parse_kind("v1alpha1/Flunder"))
    return project


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_a_program_is_started_again_when_a_file_changes(tmp_path: Path) -> None:
    program, log = tmp_path / "program.py", tmp_path / "log"
    said: list[str] = []
    program.write_text(PROGRAM.format(word="one"))
    stop = asyncio.Event()
    running = asyncio.create_task(Reloader([sys.executable, "program.py"], tmp_path, said.append).run(stop))
    await until(lambda: log.exists() and log.read_text() == "one\n")
    program.write_text("def (")
    await until(lambda: "The server exited with code 1. It restarts when a file changes." in said)
    program.write_text(PROGRAM.format(word="three"))
    await until(lambda: log.read_text() == "one\nthree\n")
    stop.set()
    await running
    assert said.count("program.py changed.") == 2


def test_only_the_python_files_of_the_project_count(tmp_path: Path) -> None:
    for folder in (".git", "__pycache__", "env", "package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "README.md").touch()
    before = snapshot(tmp_path)
    assert list(before) == [os.path.join("package", "module.py")]
    (tmp_path / "package" / "module.py").unlink()
    (tmp_path / "new.py").touch()
    assert changes(before, snapshot(tmp_path)) == ["new.py", os.path.join("package", "module.py")]


@pytest.mark.timeout(600)
def test_a_new_kind_is_served_at_once_and_objects_stay(project: Project, tmp_path: Path) -> None:
    with RunningCommand(DEV, project.folder, tmp_path / "output", os.environ) as dev:
        kubeconfig = Path(dev.printed("export KUBECONFIG=(.*)"))
        dev.printed(f"({GROUP}) is ready")
        with BlockingClient(load_kubeconfig(kubeconfig)) as client:
            dev.until(lambda: _can_be_asked(client, "flunders"))
            flunders = client.resource(f"{GROUP}/v1alpha1", "flunders", namespace="default")
            flunders.create({"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}})
            new_resource(project, parse_kind("v1alpha1/Fischer"))
            dev.printed(f"({GROUP}) is ready", times=2)
            dev.until(lambda: _can_be_asked(client, "fischers"))
            assert flunders.get("a")["metadata"]["name"] == "a"
        other = RunningCommand(DEV, project.folder, tmp_path / "other", os.environ)
        assert other.process.wait(PATIENCE) == 1
        assert "is in use by another pilothouse" in other.text
        assert dev.interrupt() == 0
    assert not (project.folder / ".pilothouse").exists()


@pytest.mark.timeout(600)
def test_in_a_cluster_that_is_there_it_is_registered_for_as_long_as_it_runs(project: Project, tmp_path: Path) -> None:
    with Server() as api:
        command = [*DEV, "--kubeconfig", str(api.kubeconfig)]
        with RunningCommand(command, project.folder, tmp_path / "output", os.environ) as dev:
            dev.until(lambda: api.request("GET", f"/apis/{GROUP}/v1alpha1/flunders").status == 200)
            (project.folder / project.package / "broken.py").write_text("def (")
            (project.folder / project.package / "server.py").write_text("import wardle_apiserver.broken")
            dev.printed("(The server exited with code 1)")
            assert "SyntaxError" in dev.text
            assert GROUP in _groups(api)
            assert dev.interrupt() == 0
        assert not (project.folder / ".pilothouse").exists()
        assert GROUP not in _groups(api)


@pytest.mark.timeout(600)
def test_it_says_which_terminating_namespace_it_waits_for(project: Project, tmp_path: Path) -> None:
    namespace = "/api/v1/namespaces/wardle"
    held = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    with Server() as api:
        assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "wardle"}}).status == 201
        assert api.request("POST", f"{namespace}/configmaps", held).status == 201
        assert api.request("DELETE", namespace).status == 200
        command = [*DEV, "--kubeconfig", str(api.kubeconfig)]
        with RunningCommand(command, project.folder, tmp_path / "output", os.environ) as dev:
            dev.printed("waiting for the deletion of Namespace wardle: .*(example.com/held in 1 resource instances)")
            released = {"metadata": {"finalizers": None}}
            api.request("PATCH", f"{namespace}/configmaps/held", released, media="application/merge-patch+json")
            dev.printed(f"({GROUP}) is ready")
            assert dev.interrupt() == 0


def test_a_cluster_that_nobody_knows_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    assert main(["dev", "--kubeconfig", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert not (project.folder / ".pilothouse").exists()


def _groups(api: BlockingAPI) -> set[str]:
    services = api.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices").json["items"]
    return {service["spec"].get("group", "") for service in services}


def _can_be_asked(client: BlockingClient, plural: str) -> bool:
    from pilothouse.errors import StatusError

    try:
        client.resource(f"{GROUP}/v1alpha1", plural).list()
    except StatusError:
        return False
    return True
