"""The webhooks of all configurations of a kind, sorted by configuration name and position."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook, webhooks_of
from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.store import RegistryStore


class WebhookSource:
    def __init__(self, configurations: RegistryStore) -> None:
        self._configurations = CompiledObjects(configurations, webhooks_of)
        self._of: Sequence[tuple[AdmissionWebhook, ...]] = ()
        self._webhooks: tuple[AdmissionWebhook, ...] = ()

    async def __call__(self) -> Sequence[AdmissionWebhook]:
        """Return the webhooks. Raises CacheNotReady."""
        compiled = await self._configurations.all()
        if compiled is not self._of:
            self._of, self._webhooks = compiled, tuple(hook for hooks in compiled for hook in hooks)
        return self._webhooks
