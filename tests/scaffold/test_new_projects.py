"""What `pilothouse new` writes: once, never over what a person wrote, and nothing for names that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.cli.main import main
from pilothouse.scaffold.names import KindName, ScaffoldError, parse_kind, parse_subresource
from pilothouse.scaffold.new import new_controller, new_resource, new_server, new_subresource
from pilothouse.scaffold.project import Project, find_project

GROUP, PACKAGE = "wardle.example.com", "wardle_apiserver"
FLUNDER = KindName("Flunder", "v1alpha1")
LATER = KindName("Flunder", "v1beta1")


def new_project(folder: Path) -> Project:
    new_server(folder, GROUP)
    project = find_project(folder)
    new_resource(project, FLUNDER)
    return project


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return new_project(tmp_path)


def test_each_command_run_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["new", "server", str(tmp_path), "--group", GROUP]
    others = [
        ["new", "resource", "v1alpha1/Flunder"],
        ["new", "controller", "Flunder"],
        ["new", "subresource", "Flunder/approve"],
    ]
    assert main(server) == 0
    monkeypatch.chdir(tmp_path / "tests")  # a project is found from inside
    assert [main(words) for words in others] == [0, 0, 0]
    before = contents(tmp_path)
    capsys.readouterr()
    assert [main(words) for words in (server, *others)] == [0, 0, 0, 0]
    assert contents(tmp_path) == before
    assert capsys.readouterr().out == "Nothing to do: every file exists already.\n" * 4


def test_files_that_a_person_edited_are_kept(project: Project) -> None:
    folder = project.folder
    edited = [path for path in contents(folder) if path != "pyproject.toml"]
    for path in edited:
        (folder / path).write_text(f"# mine\n{(folder / path).read_text()}")
    before = contents(folder)
    said = [*new_server(folder, GROUP), *new_resource(project, FLUNDER)]
    assert contents(folder) == before
    assert sorted(said) == sorted(f"kept     {path} (edited)" for path in edited)


def test_a_resource_is_as_it_was_written_when_another_version_came(project: Project) -> None:
    new_resource(project, LATER)
    assert new_resource(project, FLUNDER) == []
    assert new_resource(project, LATER) == []


def test_manifests_and_docs_follow_the_server_until_somebody_edits_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "server", str(tmp_path), "--group", GROUP]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["new", "resource", "v1alpha1/Flunder"]) == 0
    services = tmp_path / "manifests" / "4-apiservice.yaml"
    services.write_text(services.read_text().replace("groupPriorityMinimum: 1000", "groupPriorityMinimum: 2000"))
    mine = services.read_text()
    capsys.readouterr()
    assert main(["new", "resource", "v1beta1/Flunder"]) == 0
    out = capsys.readouterr().out
    assert services.read_text() == mine
    assert "kept     manifests/4-apiservice.yaml (edited). Add the missing lines:" in out
    assert "\n  name: v1beta1.wardle.example.com\n" in out
    assert "updated  manifests/2-rbac.yaml" in out
    assert "updated  docs/flunders.md" in out


def test_a_project_of_another_kind_is_told_what_to_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert main(["new", "server", str(tmp_path), "--group", GROUP]) == 1
    out = capsys.readouterr().out
    assert "kept     pyproject.toml (edited)" in out
    assert f'Add to pyproject.toml:\n\n[tool.pilothouse]\ngroup = "{GROUP}"\npackage = "{PACKAGE}"\n' in out


def test_a_server_that_does_not_find_its_modules_is_told_the_imports(project: Project) -> None:
    server = project.folder / PACKAGE / "server.py"
    server.write_text(f'from pilothouse.builder import APIServer\n\nserver = APIServer(group="{GROUP}")\n')
    said = new_controller(project, FLUNDER)
    assert said[-4:] == [f"Add to {PACKAGE}/server.py:", "", f"import {PACKAGE}.controllers.flunder", ""]
    server.write_text(f"{server.read_text()}\nimport {PACKAGE}.controllers.flunder\n")
    assert new_controller(project, FLUNDER) == []


def test_a_controller_of_another_version_stands_beside_the_first(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new_resource(project, LATER)
    new_controller(project, FLUNDER)
    before = contents(project.folder)
    monkeypatch.chdir(project.folder)
    assert main(["new", "controller", "v1beta1/Flunder"]) == 0
    out = capsys.readouterr().out
    for path in (f"{PACKAGE}/controllers/flunder_v1beta1.py", "tests/test_flunder_v1beta1_controller.py"):
        assert f"created  {path}\n" in out
    assert f"note     {PACKAGE}/controllers/flunder.py reconciles v1alpha1/Flunder: both controllers run\n" in out
    assert contents(project.folder).items() >= before.items()
    assert sorted(_controllers(project)) == ["FlunderController", "FlunderV1beta1Controller"]
    assert (new_controller(project, FLUNDER), new_controller(project, LATER)) == ([], [])


def _controllers(project: Project) -> list[str]:
    """Return the controllers of the server, as a process of its own imports it."""
    program = f"from {PACKAGE}.server import server; print(*server.controllers)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project.folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_controller_says_which_field_it_needs(project: Project) -> None:
    resource = project.folder / PACKAGE / "resources" / "v1alpha1" / "flunder.py"
    resource.write_text(resource.read_text().replace("ready", "done"))
    said = "\n".join(new_controller(project, KindName("Flunder")))
    assert f"Add to Status in {PACKAGE}/resources/v1alpha1/flunder.py:\n\n        ready: bool = False\n" in said


def test_docs_and_manifests_wait_until_the_code_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = new_project(tmp_path)
    (tmp_path / PACKAGE / "controllers" / "broken.py").write_text("def (")
    monkeypatch.chdir(tmp_path)
    assert main(["new", "resource", "v1/Fischer"]) == 1
    captured = capsys.readouterr()
    assert f"created  {PACKAGE}/resources/v1/fischer.py" in captured.out
    assert captured.err.startswith(
        f"Error: docs and manifests were not updated: cannot import {PACKAGE}.server: Syntax"
    )
    assert not (project.folder / "docs").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["server", "there", "--group", "Wardle.example.com"], 'group "Wardle.example.com": a lowercase RFC 1123'),
        (["server", "there", "--group", "wardle"], 'group "wardle" needs a dot, as in wardle.example.com'),
        (["server", "there", "--group", "7up.example.com"], 'group "7up.example.com" must begin with a letter'),
        (["resource", "Flunder"], '"Flunder" must name version and kind, as in v1alpha1/Flunder'),
        (["resource", "alpha1/Flunder"], 'version "alpha1" must be like v1, v1beta1 or v1alpha1'),
        (["resource", "v1/../../x"], 'version "v1/../.." must be like v1'),
        (["resource", "v1/flunder"], 'kind "flunder" must be CamelCase'),
        (["resource", "v1/Resource"], 'kind "Resource" is reserved'),
        (["controller", "Fischer"], "Fischer does not exist: create it with `pilothouse new resource v1alpha1/"),
        (["controller", "v1/Flunder"], "Flunder does not exist: create it with `pilothouse new resource v1/Flunder`"),
        (["subresource", "Flunder"], '"Flunder" must name kind and subresource, as in Flunder/approve'),
        (["subresource", "Flunder/Approve"], 'subresource "Approve": a lowercase RFC 1123 label'),
        (["subresource", "Flunder/status"], 'subresource "status" follows from the types of Flunder'),
    ],
)
def test_wrong_names_are_refused_and_nothing_is_written(
    words: list[str],
    reason: str,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project.folder)
    before = contents(project.folder)
    assert main(["new", *words]) == 1
    assert capsys.readouterr().err.startswith(f"Error: {reason}")
    assert contents(project.folder) == before
    assert not (project.folder / "there").exists()


def test_a_folder_has_one_server(project: Project) -> None:
    with pytest.raises(ScaffoldError, match=f"is the project of {GROUP} already"):
        new_server(project.folder, "other.example.com")


def test_of_several_versions_one_must_be_named(project: Project) -> None:
    new_resource(project, LATER)
    with pytest.raises(ScaffoldError, match="Flunder has several versions: name one of v1alpha1/Flunder, v1beta1"):
        new_subresource(project, *parse_subresource("Flunder/approve"))
    assert len(new_subresource(project, *parse_subresource("v1beta1/Flunder/approve"))) == 2


def test_what_cannot_be_written_leaves_nothing_half_written(project: Project) -> None:
    (project.folder / PACKAGE / "resources" / "v2").write_text("in the way")
    before = contents(project.folder)
    with pytest.raises(ScaffoldError, match="cannot read"):
        new_resource(project, parse_kind("v2/Flunder"))
    assert contents(project.folder) == before


def test_a_kind_may_be_called_like_a_word_of_python(project: Project) -> None:
    new_resource(project, parse_kind("v1alpha1/Class"))
    new_controller(project, parse_kind("Class"))
    new_subresource(project, *parse_subresource("Class/import"))
    for path in project.folder.rglob("*.py"):
        compile(path.read_text(), path, "exec")


def test_outside_of_a_project_nothing_can_be_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["new", "controller", "Flunder"], ["docs"], ["manifests"], ["dev"]):
        assert main(words) == 1
        assert "is not in a project" in capsys.readouterr().err
