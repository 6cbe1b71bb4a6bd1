"""The authorizers that are configured, in their order. Members of system:masters come before all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.instrumented import InstrumentedAuthorizer
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.controlplane.authorization.settings import AuthorizerSettings, WebhookSettings
from pilothouse.controlplane.options.authorization import (
    ABAC,
    ALWAYS_ALLOW,
    ALWAYS_DENY,
    NODE,
    RBAC,
    WEBHOOK,
    AuthorizationOptions,
)
from pilothouse.kube.node_authorizer.graph import NodeGraph
from pilothouse.kube.rbac.authorizer.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.authorizer.policy import RBACPolicy
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.controlplane.review_webhook import KubeconfigReviews


@dataclass(frozen=True, slots=True)
class Chain:
    """Authorizers in their order."""

    authorizer: UnionAuthorizer
    webhooks: tuple[KubeconfigReviews, ...] = ()
    """Those that are asked. They must be closed when nobody uses the authorizers any more."""


@dataclass(frozen=True, slots=True)
class AuthorizerSources:
    """The objects that authorizers decide by; somebody else keeps them up to date."""

    policy: RBACPolicy
    graph: NodeGraph


class ChainBuilder:
    def __init__(self, sources: AuthorizerSources, *, types: Iterable[str], policy_file: str = "") -> None:
        """Only `types` and webhooks can be built later on. Raises ValueError, OSError."""
        makers: dict[str, Callable[[], Authorizer]] = {
            ALWAYS_ALLOW: AlwaysAllow,
            ALWAYS_DENY: AlwaysDeny,
            RBAC: lambda: RBACAuthorizer(sources.policy),
            NODE: lambda: _nodes(sources.graph),
            ABAC: lambda: _abac(policy_file),
        }
        wanted = {ALWAYS_ALLOW, ALWAYS_DENY, *types} - {WEBHOOK}
        self._built = {type: makers[type]() for type in sorted(wanted)}

    def build(self, configured: Iterable[AuthorizerSettings]) -> Chain:
        """Raises ValueError."""
        authorizers: list[Authorizer] = [PrivilegedGroup()]
        webhooks: list[KubeconfigReviews] = []
        for settings in configured:
            authorizer = self._webhook(settings.name, settings.webhook, webhooks) if settings.webhook else None
            found = authorizer or self._built.get(settings.type)
            if found is None:
                why = "is not allowed if it was not enabled at initial server startup"
                raise ValueError(f"authorizer type {settings.type} {why}")
            authorizers.append(InstrumentedAuthorizer(found, type=settings.type, name=settings.name))
        return Chain(UnionAuthorizer(authorizers), tuple(webhooks))

    def _webhook(self, name: str, settings: WebhookSettings, webhooks: list[KubeconfigReviews]) -> Authorizer:
        # An HTTP client and the interpreter of expressions are much to load for servers that ask nobody.
        from pilothouse.apiserver.authz.webhook.authorizer import WebhookAuthorizer, WebhookConfig
        from pilothouse.apiserver.authz.webhook.match_conditions import ReviewConditions, compiled_condition
        from pilothouse.controlplane.review_webhook import KubeconfigReviews

        webhook = KubeconfigReviews(Path(settings.kubeconfig), timeout=settings.timeout)
        webhooks.append(webhook)
        config = WebhookConfig(
            name,
            settings.version,
            authorized_ttl=settings.authorized_ttl,
            unauthorized_ttl=settings.unauthorized_ttl,
            on_error=Decision.DENY if settings.denies_on_failure else Decision.NO_OPINION,
            conditions=ReviewConditions([compiled_condition(each) for each in settings.conditions]),
        )
        return WebhookAuthorizer(webhook, config)


def _nodes(graph: NodeGraph) -> Authorizer:
    from pilothouse.kube.node_authorizer.authorizer import NodeAuthorizer

    return NodeAuthorizer(graph)


def _abac(file: str) -> Authorizer:
    from pilothouse.kube.abac.authorizer import ABACAuthorizer
    from pilothouse.kube.abac.policy_file import read_policies

    return ABACAuthorizer(read_policies(Path(file)))


def settings_of_flags(options: AuthorizationOptions) -> tuple[AuthorizerSettings, ...]:
    webhook = WebhookSettings(
        options.webhook_config_file,
        options.webhook_version,
        authorized_ttl=options.webhook_cache_authorized_ttl,
        unauthorized_ttl=options.webhook_cache_unauthorized_ttl,
    )
    return tuple(
        AuthorizerSettings(mode, "default", webhook) if mode == WEBHOOK else AuthorizerSettings(mode, mode.lower())
        for mode in options.modes
    )
