"""Pilothouse: the flags that kube-apiserver does not have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import flag
from pilothouse.machinery.flags.values import BOOL, INT, STRING
from pilothouse.machinery.platform import CAN_FORK

_AUTO = "auto"
_MOST_WORKERS = 256
_SHOWN_IN_THE_CONSOLE = 200
_MOST_RECENT_REQUESTS = 10_000


@dataclass(frozen=True)
class PilothouseOptions:
    title: ClassVar[str] = "pilothouse"

    data_dir: str = flag(
        "data-dir", STRING, "", "The home of store, certificates and kubeconfig; $XDG_DATA_HOME/pilothouse if empty."
    )
    kubeconfig_out: str = flag(
        "kubeconfig-out",
        STRING,
        "",
        "Where to write a kubeconfig with every right; admin.kubeconfig in --data-dir if empty.",
    )

    workers: str = flag(
        "workers",
        STRING,
        "1",
        "How many processes serve the API, on as many cores; 'auto' for one a core. The store gets another.",
    )
    console: bool = flag(
        "console", BOOL, False, "Whether to serve the console beside the API, on a free port of 127.0.0.1."
    )

    recent_requests: int = flag(
        "recent-requests", INT, 0, "How many of the last requests are kept in memory and shown at /debug/requests."
    )
    testing: bool = flag(
        "testing",
        BOOL,
        False,
        "Serve testing.pilothouse.dev, by which clients may make the server misbehave and set its clock. Only for"
        " tests: never with an address that other machines can reach.",
    )

    @property
    def worker_count(self) -> int:
        return (os.cpu_count() or 1) if self.workers == _AUTO else int(self.workers)

    @property
    def kept_requests(self) -> int:
        """How many of the last requests are kept: the console has a view of them."""
        return self.recent_requests or (_SHOWN_IN_THE_CONSOLE if self.console else 0)

    def validate(self) -> Iterator[str]:
        if os.path.exists(self.data_dir) and not os.path.isdir(self.data_dir):
            yield f"--data-dir: {self.data_dir} is not a directory"
        if self.workers != _AUTO and not (self.workers.isdecimal() and 1 <= int(self.workers) <= _MOST_WORKERS):
            yield f"--workers {self.workers} must be 'auto' or between 1 and {_MOST_WORKERS}, inclusive"
        elif self.worker_count > 1 and not CAN_FORK:
            yield f"--workers {self.workers}: this system cannot fork processes that share sockets; use --workers 1"
        if not 0 <= self.recent_requests <= _MOST_RECENT_REQUESTS:
            yield f"--recent-requests {self.recent_requests} must be between 0 and {_MOST_RECENT_REQUESTS}, inclusive"


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification wants relative paths ignored.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share"
    return root / "pilothouse"
