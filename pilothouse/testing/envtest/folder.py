"""The folder for KUBEBUILDER_ASSETS. Its programs start this installation, independent of the environment."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pilothouse

PROGRAMS = ("kube-apiserver", "etcd")
"""Programs, which are also subcommands of `pilothouse envtest`."""

_PACKAGES = str(Path(pilothouse.__file__).parents[1])

_STARTER = """import sys
if {packages!r} not in sys.path:
    sys.path.insert(0, {packages!r})
from pilothouse.cli.main import main
sys.exit(main(["envtest", *{words!r}, *sys.argv[1:]]))"""

_NO_KUBECTL = """#!/bin/sh
echo 'Error: kubectl was not on the PATH when this folder was created.' >&2
echo 'Install it (https://kubernetes.io/docs/tasks/tools/) and run `pilothouse envtest path` again.' >&2
exit 127
"""


def default_folder(kubernetes_version: str = "") -> Path:
    """Return the folder of this installation and version in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    installation = sha256(f"{sys.executable}\n{_PACKAGES}".encode()).hexdigest()[:12]
    version = f"-{kubernetes_version}" if kubernetes_version else ""
    return cache / "pilothouse" / "envtest" / f"{pilothouse.__version__}{version}-{installation}"


def make_folder(folder: Path, kubernetes_version: str = "") -> None:
    """Write the three programs, replacing existing ones atomically. Raises OSError.

    The kube-apiserver implements `kubernetes_version`, or the default version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        # A shell script, because a shebang line cannot hold every interpreter path.
        words = [program]
        if kubernetes_version and program == "kube-apiserver":
            words.append(f"--kubernetes-version={kubernetes_version}")
        starter = _STARTER.format(packages=_PACKAGES, words=words)
        _install(folder / program, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(starter)} "$@"\n')
    kubectl = _kubectl(excluded=folder)
    _install(folder / "kubectl", kubectl or _NO_KUBECTL)


def _kubectl(excluded: Path) -> Path | None:
    """Return the kubectl on the PATH, outside of this folder."""
    for directory in os.get_exec_path():
        program = shutil.which("kubectl", path=directory)
        if program and Path(directory).resolve() != excluded.resolve():
            return Path(program).absolute()
    return None


def _install(path: Path, content: str | Path) -> None:
    """Write a script, or link to a program."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    if isinstance(content, Path):
        new.symlink_to(content)
    else:
        new.write_text(content, encoding="utf-8")
        new.chmod(0o755)
    new.replace(path)
