"""Builds the site."""

from __future__ import annotations

import json
import platform
import re
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

_MINOR = ".".join(__version__.split(".")[:2])


def build(out: Path, *, versioned: bool = False) -> int:
    """Write the site into a folder, in place of an earlier site. Return the exit code: 1 after a warning of the
    generator, for a page outside of every index, and for a dead link.

    A versioned site is a folder `out/X.Y` beside the sites of other versions, with a menu of versions.
    """
    if lost := unlisted():
        print("\n".join(f"{page.relative_to(ROOT)}: the index of its section does not lead to it" for page in lost))
        return 1
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        stage(Path(folder) / "docs")
        configuration = Path(folder) / "zensical.toml"
        configuration.write_text(_configuration(versioned=versioned))
        code = subprocess.run([_zensical(), "build", "--strict", "--clean", "-f", configuration]).returncode
        problems = problems_of(Path(folder) / "site") if code == 0 else ["it was not built"]
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return 1
        place = out / _MINOR if versioned else out
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(Path(folder) / "site", place)
    if versioned:
        list_versions(out)
    print(f"The site is in {place}")
    return 0


def list_versions(out: Path) -> None:
    """Write the menu of the versions in a folder, newest first, and a page that leads to the newest."""
    folders = [folder.name for folder in out.iterdir() if re.fullmatch(r"\d+\.\d+", folder.name)]
    versions = sorted(folders, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    menu = [{"version": name, "title": name, "aliases": ["latest"] if name == versions[0] else []} for name in versions]
    (out / "versions.json").write_text(json.dumps(menu, indent=2) + "\n")
    page = f'<!doctype html><title>Pilothouse</title><meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
    (out / "index.html").write_text(page)


def _configuration(*, versioned: bool) -> str:
    """Return the settings, with the navigation."""
    settings = (ROOT / "zensical.toml").read_text()
    added = f"nav = {_toml(navigation())}\ncopyright = {json.dumps(_verified_with())}\n"
    overrides = f"custom_dir = {json.dumps(str(ROOT / 'tools/docs/site/overrides'))}\n"
    settings = settings.replace("[project]\n", f"[project]\n{added}", 1)
    settings = settings.replace("[project.theme]\n", f"[project.theme]\n{overrides}", 1)
    # The theme reads versions.json of the folder above, in the format of mike.
    return settings + ('\n[project.extra.version]\nprovider = "mike"\n' if versioned else "")


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
