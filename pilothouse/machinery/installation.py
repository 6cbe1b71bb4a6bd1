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
from typing import Any
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


def source_requirement() -> list[str]:
    """Return pip's arguments that install the same Pilothouse in another environment.

    An empty list means that Pilothouse was installed from an index, where pip finds it by its name.
    """
    if (folder := _installed_folder()) is not None:
        return folder
    source = _direct_url()
    url, revision = source.get("url", ""), source.get("vcs_info", {})
    if revision:
        return [f"{revision['vcs']}+{url}@{revision['commit_id']}"]
    return [unquote(urlsplit(url).path)] if url.startswith("file:") else [url] if url else []


def _direct_url() -> dict[str, Any]:
    """Return the origin of the installation as PEP 610 records it; empty if installed from an index."""
    installed = _installed()
    text = installed.read_text("direct_url.json") if installed else None
    return json.loads(text) if text else {}


def _installed() -> Distribution | None:
    try:
        return distribution("pilothouse")
    except PackageNotFoundError:  # run from sources, not installed
        return None


def _installed_folder() -> list[str] | None:
    """Return pip's arguments for the source folder; None if Pilothouse was installed from a file or an index."""
    if _installed() is None:
        return [str(_SOURCES)]
    source = _direct_url()
    folder = Path(unquote(urlsplit(source.get("url", "")).path))
    if "dir_info" not in source or not folder.is_dir():
        return None
    return ["-e", str(folder)] if source["dir_info"].get("editable") else [str(folder)]


def _install(*words: str) -> str:
    """Return the command line. Environments created by uv have no pip."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return " ".join([pip, *map(shlex.quote, words)])
