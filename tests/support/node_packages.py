"""Node, and the packages that npm installs for an example and for tests in a browser, kept between runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

NO_NODE = "this machine has no node 20 or newer with npm"
NO_PAGE = "the console's page was not built on this machine"
NO_REGISTRY = "npm does not reach its registry from here"

_OLDEST = 20
_CACHE = Path(__file__).parents[2] / ".pytest_cache"
_UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ENOTCACHED")


class Unreachable(Exception):
    """npm could not ask its registry."""


def node_is_there() -> bool:
    if not shutil.which("npm") or not (node := shutil.which("node")):
        return False
    return int(subprocess.check_output([node, "--version"], text=True).removeprefix("v").partition(".")[0]) >= _OLDEST


def installed(package: Path) -> Path:
    """Return the folder `node_modules` with what the package.json asks for. Raises Unreachable."""
    folder = _CACHE / f"node-{sha256(package.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(package, folder)
        _install(folder)
        (folder / "complete").touch()
    return folder / "node_modules"


def _install(folder: Path) -> None:
    command = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"]
    limits = ["--fetch-retries=0", "--fetch-timeout=20000"]
    done = subprocess.run([*command, *limits], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and _UNREACHABLE.search(done.stderr):
        raise Unreachable(done.stderr)
    assert done.returncode == 0, done.stderr
