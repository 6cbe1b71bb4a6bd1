"""The servers of a session: one for each set of options that a test asks for, started when the first one does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pilothouse.machinery.dataclass import dataclass
from pilothouse.testing.api import BlockingAPI
from pilothouse.testing.errors import StartError
from pilothouse.testing.in_thread import Server
from pilothouse.testing.pytest_plugin.existing import existing_cluster
from pilothouse.testing.pytest_plugin.installing import install, remove
from pilothouse.testing.pytest_plugin.manifests import BadManifest, Manifest, read_manifests
from pilothouse.testing.pytest_plugin.settings import Settings
from pilothouse.testing.pytest_plugin.story import story_of
from pilothouse.testing.pytest_plugin.template import put_back, take_template
from pilothouse.testing.pytest_plugin.webhooks import WebhookPlace, webhook_place

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot

_SHOWN_REQUESTS = 50


@dataclass(frozen=True, slots=True)
class OneTest:
    """The server as one test has it."""

    api: BlockingAPI
    webhooks: WebhookPlace | None
    template: StoredSnapshot | None
    """What the server had when the test began; None for a cluster that is not ours."""
    began: datetime

    def story(self) -> list[tuple[str, str]]:
        """Return what has happened on the server since, as sections of a report."""
        return story_of(self.api, self.template, self.began) if self.template is not None else []


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server with what its template has in it."""

    api: BlockingAPI
    webhooks: WebhookPlace | None
    template: StoredSnapshot | None

    @contextmanager
    def one_test(self) -> Iterator[OneTest]:
        """Put the server back to its template. What the test opens is closed at the end of the block."""
        with ExitStack() as opened:
            if self.template is not None:
                put_back(self.api, self.template)
            api = replace(self.api, opened=opened)
            yield OneTest(api, self.webhooks, self.template, datetime.now(UTC))


class Clusters:
    """Starts servers, and ends them with its block. One that could not be made is not tried again."""

    def __init__(self, kubeconfig: str | None) -> None:
        """With a kubeconfig all tests run against that cluster instead."""
        self._kubeconfig = Path(kubeconfig).absolute() if kubeconfig else None
        self._known: dict[str, Cluster | str] = {}
        self._running = ExitStack()

    def __enter__(self) -> Clusters:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def get(self, settings: Settings) -> Cluster:
        """Return the server with these settings. Ends the test where there can be none, with the reason."""
        if (known := self._known.get(settings.key)) is None:
            known = self._known[settings.key] = self._made(settings)
        if isinstance(known, str):
            pytest.fail(f"pilothouse: {known}", pytrace=False)
        return known

    def _made(self, settings: Settings) -> Cluster | str:
        try:
            return self._foreign(settings) if self._kubeconfig else self._started(settings)
        except (StartError, BadManifest, OSError) as error:
            return str(error)

    def _started(self, settings: Settings) -> Cluster:
        given = _given(settings)
        with ExitStack() as running:
            flags: dict[str, Any] = {"recent_requests": _SHOWN_REQUESTS, "testing": True, **settings.server_flags}
            api = running.enter_context(Server(**flags))
            webhooks = _webhooks(settings, api.home.scratch)
            with replace(api, opened=ExitStack()).client() as client:
                install(client, _pointed(given, webhooks))
            cluster = Cluster(api, webhooks, take_template(api, settings.controllers or "*"))
            self._running.push(running.pop_all())
        return cluster

    def _foreign(self, settings: Settings) -> Cluster:
        assert self._kubeconfig is not None
        if settings.server_flags:
            asked = ", ".join(settings.server_flags)
            pytest.skip(f"a cluster that exists has its own flags: {asked} is for servers of Pilothouse")
        folder = Path(self._running.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-")))
        api = self._running.enter_context(existing_cluster(self._kubeconfig, folder))
        webhooks = _webhooks(settings, folder)
        manifests = _pointed(_given(settings), webhooks)
        client = api.client()
        self._running.callback(remove, client, manifests)
        install(client, manifests)
        return Cluster(api, webhooks, None)


def _webhooks(settings: Settings, folder: Path) -> WebhookPlace | None:
    return webhook_place(*settings.webhooks, folder / "webhooks") if settings.webhooks else None


def _given(settings: Settings) -> list[Manifest]:
    return [*read_manifests(settings.crds), *read_manifests(settings.manifests)]


def _pointed(manifests: list[Manifest], webhooks: WebhookPlace | None) -> list[Manifest]:
    return [webhooks.point(each) for each in manifests] if webhooks else manifests
