"""The folder and flags of a test server, with an administrator's token; and forks of a server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.http import Handler
    from pilothouse.apiserver.storage.snapshots import Snapshots
    from pilothouse.bench.bench import Bench
    from pilothouse.testing.api import API


ADMIN = "pilothouse-testing"


@dataclass(frozen=True, slots=True)
class Home:
    """Folders and flags of a server. `arguments` is the command line of `flags`. `scratch` is temporary, for
    clients.
    """

    data_dir: Path
    scratch: Path
    token: str
    arguments: list[str]
    flags: Mapping[str, Flag]


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """Address of a ready server. `handler`, `snapshots` and `bench` are set for a server in this event loop."""

    url: str
    kubeconfig: Path
    handler: Handler | None = None
    snapshots: Snapshots | None = None
    bench: Bench | None = None


@contextmanager
def new_home(data_dir: Path | None, flags: Mapping[str, Flag]) -> Iterator[Home]:
    """Create the home for the duration of the block. A given `data_dir` is kept."""
    with TemporaryDirectory(prefix="pilothouse-") as folder:
        scratch, token = Path(folder), secrets.token_urlsafe(24)
        home = data_dir or scratch / "data"
        all_flags = {"data_dir": home, **DEFAULTS, **flags}
        all_flags.setdefault("unsafe_no_fsync", data_dir is None and "etcd_servers" not in flags)
        all_flags.setdefault("kubeconfig_out", scratch / "admin.kubeconfig")
        token_auth_file = str(flags.get("token_auth_file", ""))
        # Write a token file with the administrator's token and the given tokens.
        file = scratch / "tokens.csv"
        file.touch(mode=0o600)
        other_tokens = Path(token_auth_file).read_text(encoding="utf-8") if token_auth_file else ""
        file.write_text(f'{token},{ADMIN},{ADMIN},"system:masters"\n{other_tokens}', encoding="utf-8")
        all_flags["token_auth_file"] = file
        yield Home(home, scratch, token, command_line(all_flags), flags)


Flag: TypeAlias = str | int | float | bool | Path | Iterable[str]
"""A string, number, boolean, path, or a list that is joined with commas."""
DEFAULTS: dict[str, Flag] = {"secure_port": 0, "bind_address": "127.0.0.1"}
"""Default flags of tests: a free port on loopback."""


def command_line(flags: Mapping[str, Flag]) -> list[str]:
    """Return the command line. A trailing `_` of a name is removed, for names that are Python keywords."""
    return [f"--{name.rstrip('_').replace('_', '-')}={_text(value)}" for name, value in flags.items()]


def _text(value: Flag) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float, Path)):
        return str(value)
    return ",".join(value)


_UNSHARED_FLAGS = {"data_dir", "secure_port", "kubeconfig_out"}
"""Flags that a fork does not inherit."""


@asynccontextmanager
async def fork(home: Home, *, process: bool) -> AsyncIterator[API]:
    """Run a server on a copy of the data directory. Raises ValueError, StartError."""
    from pilothouse.controlplane.data_dir import copy_data_dir
    from pilothouse.testing.running import server

    if home.flags.get("etcd_servers"):
        raise ValueError("cannot fork a server on etcd: only the embedded store can be copied")
    flags: dict[str, Any] = {name: value for name, value in home.flags.items() if name not in _UNSHARED_FLAGS}
    with TemporaryDirectory(prefix="pilothouse-fork-") as folder:
        data_dir = Path(folder) / "data"
        await asyncio.to_thread(copy_data_dir, home.data_dir, data_dir)
        async with server(data_dir=data_dir, process=process, **flags) as api:
            yield api
