"""Where a server of a test lives: a folder of its own, with a token that may do everything."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.flags import DEFAULTS, Flag, command_line

if TYPE_CHECKING:
    from pilothouse.apiserver.http import Handler
    from pilothouse.apiserver.storage.snapshots import Snapshots

ADMIN = "pilothouse-testing"


@dataclass(frozen=True, slots=True)
class Home:
    """`arguments` start a server here, and say the same as `flags`. `scratch` is for what the test's clients need, and
    goes with the home."""

    data_dir: Path
    scratch: Path
    token: str
    arguments: list[str]
    flags: Mapping[str, Flag]


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """Where a server is that is ready. `handler` is the server itself and `snapshots` what it stores, where it runs in
    this event loop."""

    url: str
    kubeconfig: Path
    handler: Handler | None = None
    snapshots: Snapshots | None = None


@contextmanager
def new_home(data_dir: Path | None, flags: Mapping[str, Flag]) -> Iterator[Home]:
    """Make the home for as long as the block lasts; a `data_dir` that was given stays."""
    with TemporaryDirectory(prefix="pilothouse-") as folder:
        scratch, token = Path(folder), secrets.token_urlsafe(24)
        home = data_dir or scratch / "data"
        all_flags = {"data_dir": home, **DEFAULTS, **flags}
        all_flags.setdefault("unsafe_no_fsync", data_dir is None and "etcd_servers" not in flags)
        all_flags.setdefault("kubeconfig_out", scratch / "admin.kubeconfig")
        all_flags["token_auth_file"] = _token_file(scratch, token, str(flags.get("token_auth_file", "")))
        yield Home(home, scratch, token, command_line(all_flags), flags)


def _token_file(folder: Path, token: str, given: str) -> Path:
    """Write a token file with ours beside those that were given."""
    file = folder / "tokens.csv"
    file.touch(mode=0o600)
    others = Path(given).read_text(encoding="utf-8") if given else ""
    file.write_text(f'{token},{ADMIN},{ADMIN},"system:masters"\n{others}', encoding="utf-8")
    return file
