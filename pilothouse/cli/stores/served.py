"""The store of a running server, as its administrators can read it over the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pilothouse.apiserver.storage.backup.door import PATH
from pilothouse.apiserver.storage.backup.lines import entry_in
from pilothouse.apiserver.storage.backup.model import BackupError, SavedEntry
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json


class ServedSource:
    """Every entry at the revision that was current at the moment of `open`, page by page."""

    def __init__(self, client: Client, first: Json) -> None:
        self.client = client
        self.revision: Revision = first["revision"]
        self.prefix: str = first["root"]

    @classmethod
    async def open(cls, client: Client) -> ServedSource:
        """Raises BackupError where the server is none of ours, StatusError, ConnectionFailed."""
        try:
            return cls(client, await client.get_json(PATH, {"prefix": "/nothing/"}))
        except NotFound:
            raise BackupError(
                "this server does not serve its store: name its etcd with --etcd-servers, "
                "or save its objects with `pilothouse snapshot save`"
            ) from None

    async def entries(self) -> AsyncIterator[SavedEntry]:
        async for entry in self.under(""):
            yield entry

    async def under(self, prefix: str, revision: Revision = 0) -> AsyncIterator[SavedEntry]:
        """The entries whose keys begin with this behind the root, at the revision, or at that of the source."""
        params = {"revision": str(revision or self.revision), "prefix": prefix}
        while True:
            page = await self.client.get_json(PATH, params)
            for line in page["entries"]:
                yield entry_in(line)
            if not page["more"]:
                return
            params["after"] = page["entries"][-1]["key"]

    async def newest(self) -> Revision:
        page = await self.client.get_json(PATH, {"prefix": "/nothing/"})
        return int(page["revision"])


@asynccontextmanager
async def served_source(kubeconfig: Path | None, context: str) -> AsyncIterator[ServedSource]:
    """Raises ConfigError, BackupError, StatusError, ConnectionFailed."""
    config = load_kubeconfig(kubeconfig, context=context)
    async with connect(replace(config, qps=0)) as client:
        yield await ServedSource.open(client)
