"""The settings of admission plugins that flags give. Apart from the plugins, because the options need only this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pilothouse.apiserver.webhook.credentials import FindCredentials
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

DEFAULT_TOLERATION_SECONDS = 300


@dataclass(frozen=True)
class AdmissionConfig:
    configurations: Mapping[str, Json] = field(default_factory=dict)
    """By the name of the plugin."""
    not_ready_toleration_seconds: int = DEFAULT_TOLERATION_SECONDS
    unreachable_toleration_seconds: int = DEFAULT_TOLERATION_SECONDS
    webhook_credentials: Mapping[str, FindCredentials] = field(default_factory=dict)
    """By the names of the plugins that call webhooks."""
