"""Packages for pip where there is no network: what a clean virtual environment installs comes from a folder of wheels,
and what pilothouse depends on is seen in this environment's site-packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_OWN = ("pilothouse", "pip", "setuptools", "__pycache__")
"""What a virtual environment must have itself."""
_BACKEND = '''
"""Hatchling's part in an editable installation: a wheel with nothing but the project's folder."""
import os, tomllib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    name = project["name"].replace("-", "_")
    info, wheel = f"{name}-{project['version']}.dist-info", f"{name}-{project['version']}-py3-none-any.whl"
    lines = [f"Requires-Dist: {each}" for each in project["dependencies"]]
    for extra, needed in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {each}; extra == '{extra}'" for each in needed)]
    metadata = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", *lines, ""]
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        archive.writestr(f"{name}.pth", os.getcwd())
        archive.writestr(f"{info}/METADATA", "\\n".join(metadata))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel
'''


def write_wheel(folder: Path) -> Path:
    """Write a wheel of this repository's pilothouse, and return its path."""
    folder.mkdir()
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text())["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    entry_points = "".join(
        "".join([f"[{group}]\n", *(f"{name} = {target}\n" for name, target in named.items())])
        for group, named in groups.items()
    )
    package = _REPOSITORY / "pilothouse"
    files = {
        str(path.relative_to(_REPOSITORY)): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    info = {"entry_points.txt": entry_points}
    return _write_wheel(folder, "pilothouse", _version(), files, requires=project["dependencies"], info=info)


def write_backend(folder: Path) -> None:
    """Write a stand-in for the build backend of new projects: all that the index of an offline machine has."""
    folder.mkdir()
    _write_wheel(folder, "hatchling", "1.27", {"hatchling/__init__.py": b"", "hatchling/build.py": _BACKEND.encode()})


def show_dependencies(venv: Path, links: Path) -> None:
    """Have a virtual environment, which need not be there yet, see what this one has, but for what is its own."""
    links.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_OWN) and path.suffix != ".pth":
            (links / path.name).symlink_to(path)
    packages = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "dependencies.pth").write_text(f"{links}\n")


def offline_environment(wheels: Path, home: Path) -> dict[str, str]:
    """Return the environment of a person who has only this machine's Python, and pip no index."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON", "VIRTUAL_ENV"))}
    return kept | {
        "PATH": f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def _version() -> str:
    import pilothouse

    return pilothouse.__version__


def _write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes],
    *,
    requires: list[str] | None = None,
    info: Mapping[str, str] | None = None,
) -> Path:
    needed = "".join(f"Requires-Dist: {each}\n" for each in requires or [])
    described = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
        **(info or {}),
    }
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        for path, text in described.items():
            archive.writestr(f"{name}-{version}.dist-info/{path}", text)
    return wheel
