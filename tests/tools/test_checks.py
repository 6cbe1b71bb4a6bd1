"""The checks of the repository: commit subjects, lock files, ends and sizes of files, the coverage floor."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.checks import commit_subject, coverage_floor, files, lock_files

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "message",
    [
        "cli: suggest the nearest flag",
        "apiserver/storage: pass the revision on\n\nThe body gives the reason.\n",
        "docs: need no network for the first page\n# a comment of git",
        "kube: focus on one selector",
        "Merge branch 'main' into topic",
        'Revert "cli: suggest the nearest flag"',
        "fixup! cli: suggest the nearest flag",
        "cli: add a flag\n\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n",
    ],
)
def test_good_commit_messages_are_accepted(message: str) -> None:
    assert list(commit_subject.faults_of(message)) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "the subject must be"),
        ("Suggest the nearest flag", "the subject must be"),
        ("cli:suggest the nearest flag", "the subject must be"),
        ("CLI: suggest the nearest flag", "the subject must be"),
        ("cli: suggest", "the subject must be"),
        ("cli: Suggest the nearest flag", "imperative verb in lower case"),
        ("cli: suggested the nearest flag", "imperative verb in lower case"),
        ("cli: suggests the nearest flag", "imperative verb in lower case"),
        ("cli: suggesting the nearest flag", "imperative verb in lower case"),
        ("cli: suggest the nearest flag.", "full stop"),
        ("cli: suggest the nearest flag; sort commands", "two topics"),
        ("cli: suggest the nearest flag\nand more", "second line must be empty"),
        ("cli: suggest " + "x" * 70, "shorten it to 72"),
    ],
)
def test_bad_commit_messages_are_refused_with_the_reason(message: str, fault: str) -> None:
    [found] = commit_subject.faults_of(message)
    assert fault in found


def test_commit_hook_exits_with_1_for_a_bad_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = tmp_path / "message"
    monkeypatch.setattr("sys.argv", ["commit_subject", str(message)])
    message.write_text("cli: suggest the nearest flag\n")
    assert commit_subject.main() == 0
    message.write_text("Fixes\n")
    assert commit_subject.main() == 1
    assert capsys.readouterr().err.startswith("commit message: the subject must be")


@pytest.mark.parametrize("folder", lock_files.FOLDERS)
def test_lock_files_of_the_repository_belong_to_their_package(folder: str) -> None:
    assert list(lock_files.faults_of(ROOT / folder)) == []


def test_every_lock_file_is_checked_and_packages_without_one_pin_their_dependencies() -> None:
    packages = [file for name in ("console", "tools") for file in (ROOT / name).rglob("package.json")]
    ours = {str(file.parent.relative_to(ROOT)): file for file in packages if "node_modules" not in file.parts}
    locked = {folder for folder, file in ours.items() if file.with_name("package-lock.json").exists()}
    assert locked == set(lock_files.FOLDERS)
    for folder in ours.keys() - locked:
        versions = json.loads(ours[folder].read_text())["dependencies"].values()
        assert all(version[0].isdigit() for version in versions), f"{folder}: pin the exact versions"


def test_changed_and_unresolved_dependencies_are_faults_of_a_lock_file(tmp_path: Path) -> None:
    wanted = {"dependencies": {"a": "^1", "b": "^1"}, "devDependencies": {"c": "^1"}}
    locked = {"": {"dependencies": {"a": "^1", "b": "^2"}, "devDependencies": {"c": "^1", "d": "^1"}}}
    (tmp_path / "package.json").write_text(json.dumps(wanted))
    (tmp_path / "package-lock.json").write_text(
        json.dumps({"packages": locked | {"node_modules/c": {"version": "1.2"}}})
    )
    assert list(lock_files.faults_of(tmp_path)) == [
        "a: package-lock.json has no version",
        "b: package.json has ^1, package-lock.json has ^2",
        "d: package.json has None, package-lock.json has ^1",
    ]


def test_ends_and_sizes_of_files_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for good in (b"", b"a\n", b"\0binary"):
        file.write_bytes(good)
        assert list(files.faults_of(file)) == []
    for bad in (b"a", b"a\n\n", b"\n" + b"x" * files.LARGEST + b"\n"):
        file.write_bytes(bad)
        assert len(list(files.faults_of(file))) == 1


@pytest.mark.parametrize(
    ("measured", "passes", "message"),
    [
        (69.9, False, "coverage is 69.9 %, below the floor of 70 % in .ci/coverage-floor: add tests"),
        (70.0, True, "coverage is 70.0 %; the floor is 70 %"),
        (71.5, True, "coverage is 71.5 %, clearly above the floor of 70 %: raise .ci/coverage-floor"),
    ],
)
def test_coverage_is_compared_with_the_floor(measured: float, passes: bool, message: str) -> None:
    assert coverage_floor.verdict(measured, 70, 70) == (passes, message)


def test_floor_of_coverage_never_falls() -> None:
    passes, message = coverage_floor.verdict(99, 69.5, 70)
    assert not passes
    assert "the floor only rises: write 70" in message


@pytest.mark.skipif(shutil.which("git") is None, reason="this machine has no git")
def test_highest_floor_is_read_from_the_history(tmp_path: Path) -> None:
    assert coverage_floor.highest_committed(tmp_path) == 0

    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / ".ci").mkdir()
    for floor in ("70", "72.5", "71"):
        (tmp_path / coverage_floor.FLOOR).write_text(f"{floor}\n")
        git("add", ".")
        git("commit", "--no-verify", "-m", "ci: raise the floor")
    assert coverage_floor.highest_committed(tmp_path) == 72.5


def test_the_floor_of_the_repository_is_a_percentage() -> None:
    assert 0 < float((ROOT / coverage_floor.FLOOR).read_text()) <= 100
