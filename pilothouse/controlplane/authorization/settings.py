"""The settings of each authorizer, from flags or from a file."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    kubeconfig: str
    version: str
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    timeout: float = 30.0
    denies_on_failure: bool = False
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    type: str
    name: str
    webhook: WebhookSettings | None = None
