"""Builds the site."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pilothouse import __version__
from pilothouse.machinery.release import RELEASES
from tools.docs.pages import ROOT
from tools.docs.site.checking import problems_of
from tools.docs.site.navigation import navigation, unlisted
from tools.docs.site.staging import stage


def build(out: Path) -> int:
    """Write the site into a folder, in the place of what was there. The exit code is 1 if anything is not as it
    should be: a warning of the generator, a page that no index leads to, a reference that leads nowhere."""
    if lost := unlisted():
        print("\n".join(f"{page.relative_to(ROOT)}: the index of its section does not lead to it" for page in lost))
        return 1
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        stage(Path(folder) / "docs")
        configuration = Path(folder) / "zensical.toml"
        configuration.write_text(_configuration())
        code = subprocess.run([_zensical(), "build", "--strict", "--clean", "-f", configuration]).returncode
        problems = problems_of(Path(folder) / "site") if code == 0 else ["it was not built"]
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return 1
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(Path(folder) / "site", out)
    print(f"The site is in {out}")
    return 0


def _configuration() -> str:
    """Return the settings, with the navigation."""
    settings = (ROOT / "zensical.toml").read_text()
    added = f"nav = {_toml(navigation())}\ncopyright = {json.dumps(_verified_with())}\n"
    overrides = f"custom_dir = {json.dumps(str(ROOT / 'tools/docs/site/overrides'))}\n"
    return settings.replace("[project]\n", f"[project]\n{added}", 1).replace(
        "[project.theme]\n", f"[project.theme]\n{overrides}", 1
    )


def _verified_with() -> str:
    """Return the footer of every page: the versions whose tests ran the pages' commands."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    versions = f"Python {platform.python_version()}, Kubernetes {', '.join(RELEASES)}"
    return f"Last verified with Pilothouse {__version__} ({commit.strip() or 'a release'}), {versions}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _zensical() -> str:
    beside = Path(sys.executable).with_name("zensical")
    return str(beside) if beside.exists() else "zensical"
