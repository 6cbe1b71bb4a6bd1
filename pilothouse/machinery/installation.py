"""Installation of Pilothouse, and commands that extend it.

Commands match the way Pilothouse was installed and work without a package index that has Pilothouse.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

_EXTRA = re.compile(r"""\bextra == ['"]([\w-]+)['"]""")
_SOURCES = Path(__file__).parents[2]


def extra_command(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    installed = _installed()
    if installed is None:
        return _install(f"{_SOURCES}[{extra}]")
    requirements = (requirement.partition(";") for requirement in installed.requires or [])
    return _install(*(name.strip() for name, _, marker in requirements if extra in _EXTRA.findall(marker)))


def page_remedy() -> str:
    """Return the remedy for a missing console page, which a build without npm omits."""
    if (folder := _installed_folder()) is not None:
        reinstall = _install("--force-reinstall", "--no-deps", *folder)
        return f"install npm (it comes with Node.js 20 or later) and, where it reaches its registry, run: {reinstall}"
    wheel = "pip wheel --no-deps --wheel-dir dist CLONE"
    install = _install("--force-reinstall", "--no-deps") + " dist/pilothouse-*.whl"
    return f"install a wheel that has the page, which `{wheel}` makes of a clone where npm is: {install}"


def _installed() -> Distribution | None:
    try:
        return distribution("pilothouse")
    except PackageNotFoundError:  # run from sources, not installed
        return None


def _installed_folder() -> list[str] | None:
    """Return pip's arguments for the source folder; None if Pilothouse was installed from a file or an index."""
    installed = _installed()
    if installed is None:
        return [str(_SOURCES)]
    source = json.loads(installed.read_text("direct_url.json") or "{}")  # PEP 610
    folder = Path(unquote(urlsplit(source.get("url", "")).path))
    if "dir_info" not in source or not folder.is_dir():
        return None
    return ["-e", str(folder)] if source["dir_info"].get("editable") else [str(folder)]


def _install(*words: str) -> str:
    """Return the command line. Environments created by uv have no pip."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return " ".join([pip, *map(shlex.quote, words)])
