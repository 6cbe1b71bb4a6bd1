"""The servers of a session: one for each set of options, started on first use; or an existing cluster."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from pilothouse.client.blocking import BlockingClient
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ConfigError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.access import ServerAccess, kubeconfig_with
from pilothouse.testing.api import API, BlockingAPI
from pilothouse.testing.cluster_set import BlockingClusters, clusters
from pilothouse.testing.home import Home
from pilothouse.testing.in_thread import InThread, Server
from pilothouse.testing.pytest_plugin.any_loop import AnyLoopAPI
from pilothouse.testing.pytest_plugin.settings import Settings
from pilothouse.testing.pytest_plugin.template import (
    BadManifest,
    Manifest,
    end_faults,
    install,
    read_manifests,
    remove,
    reset,
    take_template,
)
from pilothouse.testing.pytest_plugin.webhooks import WebhookAddress, new_webhook_address
from pilothouse.testing.running import StartError
from pilothouse.testing.story import story_of

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot

_RECORDED_REQUESTS = 200

A = TypeVar("A", bound=ServerAccess)


@dataclass(frozen=True, slots=True)
class OneTest:
    """The server of one test."""

    api: BlockingAPI
    webhooks: WebhookAddress | None
    template: StoredSnapshot | None
    """Objects at the start of the test; None for an existing cluster."""
    began: datetime

    def async_api(self) -> API:
        """Return the API for code in any event loop."""
        return (AsyncExistingCluster if isinstance(self.api, ExistingCluster) else AnyLoopAPI).of(self.api)

    def story(self) -> list[tuple[str, str]]:
        """Return report sections about the changes on the server since the start."""
        if self.template is None:
            return []
        end_faults(self.api)
        return self.api.loop.run(story_of(self.api.behind, self.template, self.began))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server with its template."""

    api: BlockingAPI
    webhooks: WebhookAddress | None
    template: StoredSnapshot | None

    @contextmanager
    def one_test(self) -> Iterator[OneTest]:
        """Reset the server to its template. Resources of the test are closed at the end of the block."""
        with ExitStack() as opened:
            if self.template is not None:
                reset(self.api, self.template)
            api = replace(self.api, opened=opened)
            yield OneTest(api, self.webhooks, self.template, datetime.now(UTC))


class Clusters:
    """Starts servers, and stops them at the end of its block. A failed start is not retried."""

    def __init__(self, kubeconfig: str | None) -> None:
        """With a kubeconfig, all tests run against that cluster instead."""
        self._kubeconfig = Path(kubeconfig).absolute() if kubeconfig else None
        self._known: dict[str, Cluster | str] = {}
        self._known_sets: dict[str, BlockingClusters | str] = {}
        self._running = ExitStack()

    def __enter__(self) -> Clusters:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def get(self, settings: Settings) -> Cluster:
        """Return the server with these settings. Fails the test if the server cannot start."""
        if (cluster := self._known.get(settings.key)) is None:
            cluster = self._known[settings.key] = self._create(settings)
        if isinstance(cluster, str):
            pytest.fail(f"pilothouse: {cluster}", pytrace=False)
        return cluster

    def get_set(self, settings: Settings, groups: Mapping[str, int]) -> BlockingClusters:
        """Return the clusters with these settings in these groups. Fails the test if a cluster cannot start."""
        if self._kubeconfig:
            pytest.skip("only Pilothouse runs several clusters")
        key = f"{settings.key} {sorted(groups.items())}"
        if (known := self._known_sets.get(key)) is None:
            try:
                known = self._running.enter_context(_cluster_set(settings, groups))
            except (StartError, BadManifest, OSError) as error:
                known = str(error)
            self._known_sets[key] = known
        if isinstance(known, str):
            pytest.fail(f"pilothouse: {known}", pytrace=False)
        return known

    def _create(self, settings: Settings) -> Cluster | str:
        try:
            return self._use_existing(settings) if self._kubeconfig else self._start(settings)
        except (StartError, BadManifest, OSError) as error:
            return str(error)

    def _start(self, settings: Settings) -> Cluster:
        manifests = _read_all(settings)
        with ExitStack() as running:
            flags: dict[str, Any] = {"recent_requests": _RECORDED_REQUESTS, "testing": True, **settings.server_flags}
            api = running.enter_context(Server(**flags))
            webhooks = _webhooks(settings, api.home.scratch)
            with replace(api, opened=ExitStack()).client() as client:
                install(client, _pointed(manifests, webhooks))
            cluster = Cluster(api, webhooks, take_template(api, settings.controllers or "*"))
            self._running.push(running.pop_all())
        return cluster

    def _use_existing(self, settings: Settings) -> Cluster:
        assert self._kubeconfig is not None
        if settings.server_flags:
            flags = ", ".join(settings.server_flags)
            pytest.skip(f"flags of an existing cluster cannot be changed: {flags} needs a server of Pilothouse")
        folder = Path(self._running.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-")))
        api = self._running.enter_context(existing_cluster(self._kubeconfig, folder))
        webhooks = _webhooks(settings, folder)
        manifests = _pointed(_read_all(settings), webhooks)
        client = api.client()
        self._running.callback(remove, client, manifests)
        install(client, manifests)
        return Cluster(api, webhooks, None)


def _cluster_set(settings: Settings, groups: Mapping[str, int]) -> clusters:
    manifests = _read_all(settings)

    def install_all(api: API) -> None:
        with BlockingClient(api.config()) as client:
            install(client, manifests)

    async def prepare(api: API) -> None:
        await asyncio.to_thread(install_all, api)

    flags: dict[str, Any] = {"recent_requests": _RECORDED_REQUESTS, **settings.server_flags}
    several = clusters(flags=flags, **groups)
    several.prepare = prepare
    return several


@dataclass(frozen=True, slots=True)
class SetTest:
    """The clusters of one test."""

    clusters: BlockingClusters
    began: datetime

    def story(self) -> list[tuple[str, str]]:
        """Return report sections about the changes on every cluster since the start."""
        return self.clusters.loop.run(self.clusters.behind.story(self.began))


@contextmanager
def one_test_of(known: BlockingClusters) -> Iterator[SetTest]:
    """Reset the clusters. Resources of the test are closed at the end of the block."""
    known.reset()
    with ExitStack() as opened:
        yield SetTest(BlockingClusters(known.behind, known.loop, opened), datetime.now(UTC))


def _webhooks(settings: Settings, folder: Path) -> WebhookAddress | None:
    return new_webhook_address(*settings.webhooks, folder / "webhooks") if settings.webhooks else None


def _read_all(settings: Settings) -> list[Manifest]:
    return [*read_manifests(settings.crds), *read_manifests(settings.manifests)]


def _pointed(manifests: list[Manifest], webhooks: WebhookAddress | None) -> list[Manifest]:
    return [webhooks.point(manifest) for manifest in manifests] if webhooks else manifests


class _WithoutBench(ServerAccess):
    """Methods of an existing cluster: tests of unsupported features are skipped."""

    __slots__ = ()

    def as_user(self: A, name: str, *, groups: Iterable[str] = ()) -> A:
        """Return the cluster for another user, by impersonation."""
        impersonation = {"as": name, "as-groups": list(groups)}
        file = self.home.scratch / f"{sha256(repr(impersonation).encode()).hexdigest()[:16]}.kubeconfig"
        return replace(self, kubeconfig=kubeconfig_with(self.kubeconfig, impersonation, file, keep=True))

    def snapshot(self) -> NoReturn:
        _only_pilothouse("supports snapshots")

    def restore(self, snapshot: object) -> NoReturn:
        _only_pilothouse("supports snapshots")

    def fork(self) -> NoReturn:
        _only_pilothouse("can be forked")

    def fault(self, name: str = "", **wishes: object) -> NoReturn:
        _only_pilothouse("supports faults")

    @property
    def faults(self) -> NoReturn:
        _only_pilothouse("supports faults")

    def recording(self, name: str = "", **wishes: object) -> NoReturn:
        _only_pilothouse("supports recordings")

    @property
    def clock(self) -> NoReturn:
        _only_pilothouse("has an adjustable clock")

    def settle(self, timeout: float = 30.0, **programs: object) -> NoReturn:
        _only_pilothouse("reports quiescence")


class ExistingCluster(_WithoutBench, BlockingAPI):
    """An existing cluster. Objects are not reset between tests."""


class AsyncExistingCluster(_WithoutBench, AnyLoopAPI):
    """An existing cluster for code in any event loop."""


def _only_pilothouse(does: str) -> NoReturn:
    pytest.skip(f"only a Pilothouse server {does}")


@contextmanager
def existing_cluster(kubeconfig: Path, folder: Path) -> Iterator[ExistingCluster]:
    """Connect to the cluster for the duration of the block. Raises OSError for an unusable kubeconfig."""
    with InThread(_connected(kubeconfig, folder)) as api:
        yield ExistingCluster(**{field.name: getattr(api, field.name) for field in fields(api)})


@asynccontextmanager
async def _connected(kubeconfig: Path, folder: Path) -> AsyncIterator[API]:
    try:
        config = load_kubeconfig(kubeconfig)
    except ConfigError as error:
        raise OSError(str(error)) from error
    async with AsyncExitStack() as opened:
        yield API(config.host, kubeconfig, "", Home(folder, folder, "", [], {}), opened=opened)
