"""The folder for KUBEBUILDER_ASSETS: what is in it starts this very installation, whatever the environment is then."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pilothouse

PROGRAMS = ("kube-apiserver", "etcd")
"""Each is a word of `pilothouse envtest` as well."""

_PACKAGES = str(Path(pilothouse.__file__).parents[1])

_STARTER = """import sys
if {packages!r} not in sys.path:
    sys.path.insert(0, {packages!r})
from pilothouse.cli.main import main
sys.exit(main(["envtest", {program!r}, *sys.argv[1:]]))"""

_NO_KUBECTL = """#!/bin/sh
echo 'Error: there was no kubectl on the PATH when this folder was made.' >&2
echo 'Install it (https://kubernetes.io/docs/tasks/tools/) and run `pilothouse envtest path` again.' >&2
exit 127
"""


def default_folder() -> Path:
    """One for each installation, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    installation = sha256(f"{sys.executable}\n{_PACKAGES}".encode()).hexdigest()[:12]
    return cache / "pilothouse" / "envtest" / f"{pilothouse.__version__}-{installation}"


def make_folder(folder: Path) -> None:
    """Write the three programs, in place of those that are there. Who starts one meanwhile gets the old or the new.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        _place(folder / program, _script(program))
    kubectl = _kubectl(besides=folder)
    _place(folder / "kubectl", kubectl or _NO_KUBECTL)


def _script(program: str) -> str:
    """The shell's, because the first line of a script can not name every path that an interpreter may have."""
    starter = _STARTER.format(packages=_PACKAGES, program=program)
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(starter)} "$@"\n'


def _kubectl(besides: Path) -> Path | None:
    """Find the machine's own; the folder may be on the PATH, too."""
    for directory in os.get_exec_path():
        found = shutil.which("kubectl", path=directory)
        if found and Path(directory).resolve() != besides.resolve():
            return Path(found).absolute()
    return None


def _place(path: Path, content: str | Path) -> None:
    """Put a script there, or a link to a program."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    if isinstance(content, Path):
        new.symlink_to(content)
    else:
        new.write_text(content, encoding="utf-8")
        new.chmod(0o755)
    new.replace(path)
