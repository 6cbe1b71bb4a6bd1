"""Flag settings of admission plugins. Apart from the plugins, because flag parsing imports only this module."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.admission.manifests import StaticManifests
    from pilothouse.apiserver.admission.policy.source import PolicyManifests
    from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
    from pilothouse.apiserver.webhook.endpoint import FindCredentials

DEFAULT_TOLERATION_SECONDS = 300


@dataclass(frozen=True)
class StaticAdmission:
    """Webhooks and policies from static manifests, by plugin name."""

    webhooks: Mapping[str, StaticManifests[tuple[AdmissionWebhook, ...]]] = field(default_factory=dict)
    policies: Mapping[str, StaticManifests[PolicyManifests]] = field(default_factory=dict)

    @property
    def background(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the tasks that reload the manifests, by task name."""
        plugins: dict[str, StaticManifests[Any]] = {**self.webhooks, **self.policies}
        return {f"static manifests of {plugin}": manifests.run for plugin, manifests in plugins.items()}


@dataclass(frozen=True)
class AdmissionConfig:
    configurations: Mapping[str, Json] = field(default_factory=dict)
    """By the name of the plugin."""
    not_ready_toleration_seconds: int = DEFAULT_TOLERATION_SECONDS
    unreachable_toleration_seconds: int = DEFAULT_TOLERATION_SECONDS
    webhook_credentials: Mapping[str, FindCredentials] = field(default_factory=dict)
    """By the name of the plugin that calls the webhooks."""
    static: StaticAdmission = field(default_factory=StaticAdmission)
