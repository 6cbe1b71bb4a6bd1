"""Options that kube-apiserver does not have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, INT, STRING, FlagError, flag, invalid_value
from pilothouse.machinery.platform import CAN_FORK

KUBERNETES_VERSION = "kubernetes-version"
_AUTO = "auto"
_MOST_WORKERS = 256
_SHOWN_IN_THE_CONSOLE = 200
_HIGHEST_PORT = 65535
_MOST_RECENT_REQUESTS = 10_000


class TaskGroup(StrEnum):
    """Groups of the help for flags that kube-apiserver does not have."""

    STARTUP = "startup"
    OBSERVATION = "console and diagnostics"
    TESTING = "testing"
    SIMULATION = "simulated cluster"
    REPLICAS = "replica"


@dataclass(frozen=True)
class PilothouseOptions:
    title: ClassVar[str] = "pilothouse"

    kubernetes_version: str = flag(
        KUBERNETES_VERSION,
        STRING,
        "",
        f"Kubernetes version to implement: {', '.join(release.RELEASES)}; default: {release.DEFAULT}.",
        group=TaskGroup.STARTUP,
    )
    data_dir: str = flag(
        "data-dir",
        STRING,
        "",
        "Directory of the store, keys and kubeconfig; default: $XDG_DATA_HOME/pilothouse.",
        group=TaskGroup.STARTUP,
    )
    kubeconfig_out: str = flag(
        "kubeconfig-out",
        STRING,
        "",
        "File for the administrator's kubeconfig; default: admin.kubeconfig in --data-dir.",
        group=TaskGroup.STARTUP,
    )

    workers: str = flag(
        "workers",
        STRING,
        "1",
        "Number of API server processes; 'auto' starts one per CPU core.",
        group=TaskGroup.STARTUP,
    )
    console: bool = flag(
        "console",
        BOOL,
        False,
        "Serve the web console on 127.0.0.1.",
        group=TaskGroup.OBSERVATION,
    )
    console_port: int = flag(
        "console-port",
        INT,
        0,
        "Port of --console, so that links survive a restart; 0 chooses a free port.",
        group=TaskGroup.OBSERVATION,
    )

    recent_requests: int = flag(
        "recent-requests",
        INT,
        0,
        "Number of recent requests to keep in memory for /debug/requests.",
        group=TaskGroup.OBSERVATION,
    )
    testing: bool = flag(
        "testing",
        BOOL,
        False,
        "Serve the testing.pilothouse.dev API: faults, clock, snapshots.",
        group=TaskGroup.TESTING,
    )

    @property
    def worker_count(self) -> int:
        return (os.cpu_count() or 1) if self.workers == _AUTO else int(self.workers)

    @property
    def kept_requests(self) -> int:
        """Number of recent requests to keep; the console shows them."""
        return self.recent_requests or (_SHOWN_IN_THE_CONSOLE if self.console else 0)

    def validate(self) -> Iterator[str]:
        if os.path.exists(self.data_dir) and not os.path.isdir(self.data_dir):
            yield f"--data-dir: {self.data_dir} is not a directory"
        if self.workers != _AUTO and not (self.workers.isdecimal() and 1 <= int(self.workers) <= _MOST_WORKERS):
            yield invalid_value(self.workers, "--workers", f"a whole number from 1 to {_MOST_WORKERS}, or auto")
        elif self.worker_count > 1 and not CAN_FORK:
            yield f"--workers {self.workers}: this system cannot fork processes that share sockets; use --workers 1"
        if not 0 <= self.recent_requests <= _MOST_RECENT_REQUESTS:
            expected = f"a whole number from 0 to {_MOST_RECENT_REQUESTS}"
            yield invalid_value(str(self.recent_requests), "--recent-requests", expected)
        if not 0 <= self.console_port <= _HIGHEST_PORT:
            yield invalid_value(str(self.console_port), "--console-port", f"a port from 0 to {_HIGHEST_PORT}")


def choose_release(arguments: Iterable[str]) -> None:
    """Make the release of --kubernetes-version the release of this process. Raises FlagError.

    Call it before the command line is parsed: the release decides which flags exist.
    """
    chosen, words = "", iter(arguments)
    for word in words:
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == f"--{KUBERNETES_VERSION}":
            chosen = value if equals else next(words, "")
    if not chosen:
        return
    try:
        release.choose(chosen)
    except release.UnknownRelease:
        expected = f"one of {', '.join(release.RELEASES)}"
        raise FlagError(invalid_value(chosen, f"--{KUBERNETES_VERSION}", expected)) from None
    except release.ReleaseAlreadyChosen as error:
        raise FlagError(f"--{KUBERNETES_VERSION}={chosen}: {error}") from None


def default_data_dir() -> Path:
    """Return the default of --data-dir. Raises FlagError for a user without a home directory."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification requires relative paths to be ignored.
    root = base if os.path.isabs(base) else os.path.expanduser("~/.local/share")
    if root.startswith("~"):
        raise FlagError("this user has no home directory: choose a data directory with --data-dir")
    return Path(root) / "pilothouse"
