"""Several clusters in one process: one kubeconfig with a context for each, and links that tests delay and cut."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import orjson

from pilothouse.client.config.kubeconfig import read_kubeconfig
from pilothouse.client.idleness import PROGRAMS
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import parse_duration
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.home import Flag
from pilothouse.testing.in_thread import LoopThread, blocking_api
from pilothouse.testing.links import Link
from pilothouse.testing.running import server
from pilothouse.testing.story import story_of

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot

CONTROLLERS: Final = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"
"""Default controllers of each cluster: their number makes up most of the cost of a cluster."""


@dataclass(frozen=True, slots=True)
class _Member:
    api: API
    link: Link
    template: StoredSnapshot


class Clusters:
    """Running clusters by name, for code in an event loop. See `clusters`.

    >>> from pilothouse.testing import Clusters, clusters
    >>> async with clusters(hub=1, spokes=2) as fleet:
    ...     print([len(fleet.group(name)) for name in ("hub", "spokes")])
    [1, 2]
    """

    def __init__(self, members: Mapping[str, _Member], groups: Mapping[str, int], kubeconfig: Path) -> None:
        self._members = members
        self._groups = groups
        self.kubeconfig = kubeconfig
        """Kubeconfig file with a context for each cluster, through the links. The first cluster is the current one."""

    @property
    def names(self) -> list[str]:
        """Names of the clusters, which are their contexts: the group of one cluster, else group-1, group-2 …"""
        return list(self._members)

    def __getitem__(self, name: str) -> API:
        """Return a cluster, without its link. Raises KeyError."""
        return self._members[name].api

    def group(self, name: str) -> list[API]:
        """Return the clusters of a group. Raises KeyError."""
        return [self[member] for member in _names(name, self._groups[name])]

    def partition(self, *names: str, silent: bool = False) -> AbstractAsyncContextManager[None]:
        """Cut the clusters off for users of `kubeconfig` for the duration of the block.

        Connections are aborted. With `silent`, they stay open, and no data arrives until the end of the block.
        """
        return self._cut(names, silent)

    @asynccontextmanager
    async def _cut(self, names: Iterable[str], silent: bool) -> AsyncIterator[None]:
        links = [self._members[name].link for name in names]
        for link in links:
            await link.cut(silent=silent)
        try:
            yield
        finally:
            for link in links:
                link.heal()

    def latency(self, delay: str, *names: str) -> AbstractAsyncContextManager[None]:
        """Delay data for users of `kubeconfig` for the duration of the block, in each direction: `latency("200ms")`.

        Without names, all clusters are delayed.
        """
        return self._delayed(delay, names)

    @asynccontextmanager
    async def _delayed(self, delay: str, names: tuple[str, ...]) -> AsyncIterator[None]:
        links = [self._members[name].link for name in names or self._members]
        for link in links:
            link.delay = parse_duration(delay) / 1e9
        try:
            yield
        finally:
            for link in links:
                link.delay = 0.0

    async def settle(self, timeout: float = 30.0) -> None:
        """Wait until all clusters and the operator under test are quiescent. See `API.settle`."""
        while True:
            before = sum(getattr(worker, "activity", 0) for worker in PROGRAMS.members())
            await asyncio.gather(*(member.api.settle(timeout) for member in self._members.values()))
            if before == sum(getattr(worker, "activity", 0) for worker in PROGRAMS.members()):
                return

    async def story(self, began: datetime) -> list[tuple[str, str]]:
        """Return the changes on every cluster since its last reset, for a report."""
        return [
            (f"{title} ({name})", text)
            for name, member in self._members.items()
            for title, text in await story_of(member.api, member.template, began)
        ]

    async def reset(self) -> None:
        """Heal all links, and restore the objects and the clock of every cluster."""
        for member in self._members.values():
            member.link.heal()
            await member.api.restore(member.template)


class BlockingClusters:
    """Blocking form of Clusters.

    >>> from pilothouse.testing import BlockingClusters, clusters
    >>> with clusters(east=1, west=1) as fleet:
    ...     fleet["west"].request("GET", "/readyz").body
    b'ok'
    """

    def __init__(self, behind: Clusters, loop: LoopThread, opened: ExitStack) -> None:
        self.behind = behind
        self.loop = loop
        self.kubeconfig = behind.kubeconfig
        self._apis = {name: blocking_api(loop, behind[name], opened) for name in behind.names}

    @property
    def names(self) -> list[str]:
        """See `Clusters.names`."""
        return self.behind.names

    def __getitem__(self, name: str) -> BlockingAPI:
        return self._apis[name]

    def group(self, name: str) -> list[BlockingAPI]:
        """Blocking form of `Clusters.group`."""
        wanted = {api.url for api in self.behind.group(name)}
        return [api for api in self._apis.values() if api.url in wanted]

    @contextmanager
    def partition(self, *names: str, silent: bool = False) -> Iterator[None]:
        """Blocking form of `Clusters.partition`."""
        with self._entered(self.behind.partition(*names, silent=silent)):
            yield

    @contextmanager
    def latency(self, delay: str, *names: str) -> Iterator[None]:
        """Blocking form of `Clusters.latency`."""
        with self._entered(self.behind.latency(delay, *names)):
            yield

    def settle(self, timeout: float = 30.0) -> None:
        """Blocking form of `Clusters.settle`."""
        self.loop.run(self.behind.settle(timeout))

    def reset(self) -> None:
        """Blocking form of `Clusters.reset`."""
        self.loop.run(self.behind.reset())

    @contextmanager
    def _entered(self, block: AbstractAsyncContextManager[None]) -> Iterator[None]:
        self.loop.run(enter(block))
        try:
            yield
        finally:
            self.loop.run(leave(block))


async def enter(block: AbstractAsyncContextManager[None]) -> None:
    """Enter a block in the event loop that it belongs to."""
    await block.__aenter__()


async def leave(block: AbstractAsyncContextManager[None]) -> None:
    """Leave a block in the event loop that it belongs to."""
    await block.__aexit__(None, None, None)


class clusters:
    """Run several clusters in this process for the duration of a block, `async with` or `with`.

    Keywords are groups with the number of their clusters. Each cluster is a whole server with objects, certificates and
    a clock of its own; `flags` are the flags of `pilothouse serve` for all of them. By default the clusters run the
    controllers of namespaces and service accounts only: `flags={"controllers": "*"}` runs all.
    Raises StartError.

    >>> from pilothouse.testing import clusters
    >>> async with clusters(hub=1, spokes=2) as fleet:
    ...     print(fleet.names)
    ...     async with fleet.partition("spokes-2"):
    ...         print((await fleet["spokes-2"].request("GET", "/readyz")).body)
    ['hub', 'spokes-1', 'spokes-2']
    b'ok'
    """

    def __init__(self, *, flags: Mapping[str, Flag] | None = None, **groups: int) -> None:
        self._groups = groups
        self._flags: dict[str, Flag] = {"testing": True, "controllers": CONTROLLERS, **(flags or {})}
        self.prepare: Callable[[API], Awaitable[None]] | None = None
        """Called with the server whose objects all clusters begin with."""
        self._running: AsyncExitStack | None = None
        self._closing: ExitStack | None = None

    async def __aenter__(self) -> Clusters:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="pilothouse-clusters-")))
            flags: dict[str, Any] = {"unsafe_no_fsync": True, **self._flags}
            async with server(data_dir=folder / "template", **flags) as template:
                if self.prepare is not None:
                    await self.prepare(template)
                with suppress(TimeoutError):  # of a busy program beside the clusters
                    await template.settle()
            members: dict[str, _Member] = {}
            for name in [name for group, number in self._groups.items() for name in _names(group, number)]:
                data_dir = folder / name / "data"
                await asyncio.to_thread(_copy_store, folder / "template", data_dir)
                api = await stack.enter_async_context(server(data_dir=data_dir, **flags))
                await _identify(api)
                link = Link(int(api.url.rpartition(":")[2]))
                await link.start()
                stack.push_async_callback(link.close)
                members[name] = _Member(api, link, await api.snapshot())
            self._running = stack.pop_all()
        return Clusters(members, self._groups, _merged_kubeconfig(members, folder / "kubeconfig"))

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            await self._running.aclose()

    def __enter__(self) -> BlockingClusters:
        with ExitStack() as closing:
            loop = closing.enter_context(LoopThread())
            running = loop.run(self.__aenter__())
            closing.callback(lambda: loop.run(self.__aexit__()))
            opened = closing.enter_context(ExitStack())
            self._closing = closing.pop_all()
        return BlockingClusters(running, loop, opened)

    def __exit__(self, *_: object) -> None:
        if self._closing is not None:
            self._closing.close()


def _names(group: str, number: int) -> list[str]:
    return [group] if number == 1 else [f"{group}-{index}" for index in range(1, number + 1)]


def _copy_store(source: Path, target: Path) -> None:
    """Copy a data directory without its certificates and keys."""
    from pilothouse.controlplane.data_dir import copy_data_dir

    copy_data_dir(source, target)
    shutil.rmtree(target / "pki", ignore_errors=True)


async def _identify(api: API) -> None:
    """Give the namespaces uids of their own: programs identify a cluster by the uid of kube-system."""
    assert api.snapshots is not None
    store, prefix = api.snapshots.store, f"{api.snapshots.root}/namespaces/"
    for entry in (await store.list(prefix)).entries:
        namespace = orjson.loads(entry.value)
        namespace["metadata"]["uid"] = str(uuid.uuid4())
        await store.update(entry.key, orjson.dumps(namespace), expected=entry.modified)


def _merged_kubeconfig(members: Mapping[str, _Member], file: Path) -> Path:
    config: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "current-context": next(iter(members), "")}
    clusters, users, contexts = [], [], []
    for name, member in members.items():
        own = read_kubeconfig(member.api.kubeconfig)
        cluster = {**own["clusters"][0]["cluster"], "server": f"https://127.0.0.1:{member.link.port}"}
        clusters.append({"name": name, "cluster": cluster})
        users.append({"name": name, "user": own["users"][0]["user"]})
        contexts.append({"name": name, "context": {"cluster": name, "user": name}})
    file.touch(mode=0o600)
    file.write_bytes(emit_yaml({**config, "clusters": clusters, "users": users, "contexts": contexts}))
    return file
