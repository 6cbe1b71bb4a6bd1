"""`pilothouse new operator`: the project, and its commands in a clean virtual environment, end to end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from offline_packages import offline_environment, show_dependencies, write_backend, write_wheel
from running_command import RunningCommand

from pilothouse.cli.main import main
from pilothouse.errors import NotFound
from pilothouse.scaffold.names import KindName, OperatorName, parse_operator
from pilothouse.scaffold.new import new_operator
from pilothouse.testing import BlockingAPI

BACKUP = OperatorName("backup-operator", "demo.example.com", KindName("Backup"))
OBJECT = {
    "apiVersion": "demo.example.com/v1alpha1",
    "kind": "Backup",
    "metadata": {"name": "a"},
    "spec": {"greeting": "good evening"},
}


def test_a_project_has_code_tests_image_and_ci(tmp_path: Path) -> None:
    lines = new_operator(tmp_path, BACKUP)
    assert [line.removeprefix("created  ") for line in lines] == [
        *("pyproject.toml", "README.md", "Dockerfile", ".dockerignore", ".gitignore", ".github/workflows/ci.yaml"),
        *(f"backup_operator/{name}.py" for name in ("__init__", "__main__", "kinds", "manager", "reconciler")),
        "tests/test_backup.py",
    ]
    steps = yaml.safe_load((tmp_path / ".github/workflows/ci.yaml").read_text())["jobs"]["test"]["steps"]
    assert steps[-1]["run"].endswith("--check")
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    assert new_operator(tmp_path, BACKUP) == []


def test_files_that_a_person_edited_are_kept(tmp_path: Path) -> None:
    new_operator(tmp_path, BACKUP)
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    assert new_operator(tmp_path, BACKUP) == ["kept     Dockerfile (edited)"]


def test_names_follow_from_the_name() -> None:
    assert parse_operator("db-backup") == parse_operator("db-backup-operator")
    assert parse_operator("db-backup") == OperatorName(
        "db-backup-operator", "db-backup.example.com", KindName("DbBackup")
    )
    assert parse_operator("a", group="b.example.com", kind="Boat").package == "a_operator"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["Backup"], 'name "Backup": a lowercase RFC 1123 label'),
        (["7up"], 'name "7up" must begin with a letter'),
        (["backup", "--group", "demo"], 'group "demo" needs a dot'),
        (["backup", "--kind", "backup"], 'kind "backup" must be CamelCase'),
        (["manager"], 'kind "Manager" is reserved'),
    ],
)
def test_wrong_names_are_refused_and_nothing_is_written(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "operator", *words]) == 1
    assert capsys.readouterr().err.startswith(f"Error: {reason}")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An offline machine, whose packages for pip do not include pilothouse. Pytest loads the plugins of the project."""
    folder = tmp_path_factory.mktemp("packages")
    write_backend(folder / "index")
    return offline_environment(folder / "index", folder) | {"PYTEST_ADDOPTS": "-p pilothouse-testing -p asyncio"}


@pytest.fixture(scope="module")
def project(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that a pilothouse creates that was installed from a wheel."""
    wheel = write_wheel(tmp_path_factory.mktemp("wheel") / "dist")
    folder = tmp_path_factory.mktemp("empty")
    show_dependencies(folder / "tools", folder / "links-of-tools")
    show_dependencies(folder / "backup-operator" / ".venv", folder / "links")
    _run(f"python3 -m venv tools && tools/bin/pip install {wheel}", folder, environment)
    _run("tools/bin/pilothouse new operator backup --group demo.example.com", folder, environment)
    return folder / "backup-operator"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_commands_of_the_readme_work(
    project: Path, environment: dict[str, str], pilothouse: BlockingAPI, tmp_path: Path
) -> None:
    test, run, generate, _, _ = re.findall(
        r"^```sh\n(.*?)\n```$", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert "1 passed" in _run(test, project, environment)
    before = {path.name: path.read_bytes() for path in (project / "manifests").iterdir()}
    assert _run(generate, project, environment) == ""
    assert _run(f"{generate} --check", project, environment) == ""
    assert {path.name: path.read_bytes() for path in (project / "manifests").iterdir()} == before

    cluster = environment | {"KUBECONFIG": str(pilothouse.kubeconfig)}
    client = pilothouse.client()
    maps = client.resource("v1", "configmaps", namespace="default")
    with RunningCommand(f"exec {run}", project, tmp_path / "output", cluster) as running:
        definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        running.until(lambda: [obj for obj in definitions.items() if obj["metadata"]["name"].startswith("backups.")])
        running.until(lambda: _created(pilothouse))
        running.until(lambda: [obj for obj in maps.items() if obj["metadata"]["name"] == "a"])
        assert maps.get("a")["data"] == {"greeting": "good evening"}
        assert running.interrupt() == 0


def _created(pilothouse: BlockingAPI) -> bool:
    """Create the object, as soon as its definition is served."""
    try:
        pilothouse.client().resource("demo.example.com/v1alpha1", "backups", namespace="default").create(OBJECT)
    except NotFound:
        return False
    return True


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
