"""The example in another language: Node's official client, and of Pilothouse only the folder for envtest."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from envtest_steps import envtest_folder
from example_module import EXAMPLES
from node_packages import NO_NODE, NO_REGISTRY, Unreachable, installed, node_is_there

pytestmark = pytest.mark.slow

SUITE = EXAMPLES / "testing" / "node"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example with its packages."""
    if not node_is_there():
        pytest.skip(NO_NODE)
    try:
        packages = installed(SUITE / "package.json")
    except Unreachable:
        pytest.skip(NO_REGISTRY)
    project = tmp_path / "project"
    shutil.copytree(SUITE, project, ignore=shutil.ignore_patterns("node_modules"))
    (project / "node_modules").symlink_to(packages)
    return project


def test_the_suite_passes_and_leaves_nothing_behind(project: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**os.environ, "KUBEBUILDER_ASSETS": str(envtest_folder(tmp_path / "assets")), "TMPDIR": str(temporary)}
    done = subprocess.run(["node", "--test"], cwd=project, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0\n" in done.stdout
    assert "# pass 0\n" not in done.stdout
    assert list(temporary.iterdir()) == []
