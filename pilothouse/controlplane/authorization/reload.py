"""Authorizers of a configuration file. A valid new version of the file replaces the authorizers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Rules
from pilothouse.apiserver.file_watch import ReloadedFile
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.controlplane.authorization.configuration import read_authorization_configuration
from pilothouse.controlplane.authorization.setup import Chain, ChainBuilder
from pilothouse.controlplane.options.authorization import WEBHOOK

_LINGER = 60.0
"""Seconds before replaced authorizers are closed, because requests in flight still use them."""

RELOADS = CounterTally(
    "apiserver_authorization_config_controller_automatic_reloads",
    "Reloads of the authorization configuration, by whether they succeeded.",
    ("status",),
    registry=REGISTRY,
)


class ReloadedAuthorizer:
    def __init__(self, builder: ChainBuilder, chain: Chain, types: Iterable[str]) -> None:
        """Create the authorizer. Every configuration must keep the initial `types`."""
        self._builder = builder
        self._chain = chain
        self._types = frozenset(types) - {WEBHOOK}
        self._retired: list[tuple[float, Chain]] = []

    async def authorize(self, attributes: Attributes) -> Answer:
        return await self._chain.authorizer.authorize(attributes)

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return await self._chain.authorizer.rules_for(user, namespace)

    async def follow(self, file: ReloadedFile) -> None:
        """Reload the file until cancelled."""
        try:
            await file.run()
        finally:
            for chain in (self._chain, *(chain for _, chain in self._retired)):
                await _close(chain)

    async def reload(self, data: bytes) -> None:
        """Apply new content. Raises ValueError."""
        try:
            built = self._builder.build(read_authorization_configuration(data, needed=self._types))
        except ValueError:
            RELOADS.inc(("failure",))
            raise
        RELOADS.inc(("success",))
        self._retired.append((time.monotonic() + _LINGER, self._chain))
        self._chain = built
        due = [retired for retired in self._retired if retired[0] <= time.monotonic()]
        self._retired = [retired for retired in self._retired if retired not in due]
        for _, chain in due:
            await _close(chain)


async def _close(chain: Chain) -> None:
    for webhook in chain.webhooks:
        await webhook.close()


def configured_authorizer(file: Path, content: bytes, builder: ChainBuilder) -> tuple[ReloadedAuthorizer, ReloadedFile]:
    """Return the authorizer and its file watcher. Raises ValueError."""
    settings = read_authorization_configuration(content)
    authorizer = ReloadedAuthorizer(builder, builder.build(settings), (setting.type for setting in settings))
    return authorizer, ReloadedFile(file, content, authorizer.reload)
