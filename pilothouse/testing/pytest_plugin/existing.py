"""A cluster that exists already, to a test the same as a server of its own, but for what only Pilothouse can do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ConfigError
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.home import Home
from pilothouse.testing.in_thread import InThread
from pilothouse.testing.kubeconfigs import kubeconfig_with

A = TypeVar("A", bound="ExistingCluster")


class ExistingCluster(BlockingAPI):
    """Nothing is put back between tests, and what cannot be done here skips the test that wants it."""

    def as_user(self: A, name: str, *, groups: Iterable[str] = ()) -> A:
        """Return the cluster as somebody else sees it, by impersonation."""
        who = {"as": name, "as-groups": list(groups)}
        file = self.home.scratch / f"{sha256(repr(who).encode()).hexdigest()[:16]}.kubeconfig"
        return replace(self, kubeconfig=kubeconfig_with(self.kubeconfig, who, file, keep=True))

    def snapshot(self) -> NoReturn:
        _only_pilothouse("takes snapshots")

    def restore(self, snapshot: object) -> NoReturn:
        _only_pilothouse("goes back to a snapshot")

    def fork(self) -> NoReturn:
        _only_pilothouse("is forked")

    def fault(self, name: str = "", **wishes: object) -> NoReturn:
        _only_pilothouse("misbehaves on request")

    @property
    def faults(self) -> NoReturn:
        _only_pilothouse("misbehaves on request")

    def recording(self, name: str = "", **wishes: object) -> NoReturn:
        _only_pilothouse("records requests")

    @property
    def clock(self) -> NoReturn:
        _only_pilothouse("lets tests set its clock")

    def settle(self, timeout: float = 30.0) -> NoReturn:
        _only_pilothouse("knows when it has come to rest")


def _only_pilothouse(does: str) -> NoReturn:
    pytest.skip(f"only a server of Pilothouse {does}")


@contextmanager
def existing_cluster(kubeconfig: Path, folder: Path) -> Iterator[ExistingCluster]:
    """Reach the cluster for as long as the block lasts. Raises OSError where the kubeconfig cannot be used."""
    with InThread(_reached(kubeconfig, folder)) as api:
        yield ExistingCluster(**{each.name: getattr(api, each.name) for each in fields(api)})


@asynccontextmanager
async def _reached(kubeconfig: Path, folder: Path) -> AsyncIterator[API]:
    try:
        config = load_kubeconfig(kubeconfig)
    except ConfigError as error:
        raise OSError(str(error)) from error
    async with AsyncExitStack() as opened:
        yield API(config.host, kubeconfig, "", Home(folder, folder, "", [], {}), opened=opened)
