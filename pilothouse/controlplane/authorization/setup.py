"""Construction of the authorizer chain. Members of system:masters bypass the configured authorizers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.authz.union import InstrumentedAuthorizer, UnionAuthorizer
from pilothouse.controlplane.options import authorization
from pilothouse.controlplane.options.files import content
from pilothouse.kube.node_authorizer.graph import NodeGraph
from pilothouse.kube.rbac.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.controlplane.review_webhook import KubeconfigReviews


@dataclass(frozen=True, slots=True)
class Authorization:
    authorizer: Authorizer
    policy: RBACPolicy
    """RBAC policy; a registry follower fills the policy."""
    node_graph: NodeGraph | None
    """Graph of the node authorizer, if enabled; a registry follower fills the graph."""
    background: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)


def set_up_authorization(options: authorization.AuthorizationOptions) -> Authorization:
    """Build the authorizers. Raises ValueError, OSError."""
    sources = AuthorizerSources(RBACPolicy(), NodeGraph())
    if options.config:
        file = options.config
        from pilothouse.controlplane.authorization.configuration import read_authorization_configuration
        from pilothouse.controlplane.authorization.reload import configured_authorizer

        data = content(file)
        types = {settings.type for settings in read_authorization_configuration(data)}
        authorizer, watched = configured_authorizer(Path(file), data, ChainBuilder(sources, types=types))
        graph = sources.graph if authorization.NODE in types else None
        return Authorization(
            authorizer, sources.policy, graph, {"authorization configuration": partial(authorizer.follow, watched)}
        )
    builder = ChainBuilder(sources, types=options.modes, policy_file=options.policy_file)
    chain = builder.build(settings_of_flags(options))
    graph = sources.graph if authorization.NODE in options.modes else None
    background = {"authorization webhook": chain.webhooks[0].run} if chain.webhooks else {}
    return Authorization(chain.authorizer, sources.policy, graph, background)


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


@dataclass(frozen=True, slots=True)
class Chain:
    """Authorizers, in order."""

    authorizer: UnionAuthorizer
    webhooks: tuple[KubeconfigReviews, ...] = ()
    """Webhook clients of the chain. Close the clients when the chain is no longer used."""


@dataclass(frozen=True, slots=True)
class AuthorizerSources:
    """State that authorizers read. Registry followers keep the state current."""

    policy: RBACPolicy
    graph: NodeGraph


class ChainBuilder:
    def __init__(self, sources: AuthorizerSources, *, types: Iterable[str], policy_file: str = "") -> None:
        """Create the built-in authorizers of `types`. `build` can use these types and webhooks. Raises ValueError,
        OSError."""
        makers: dict[str, Callable[[], Authorizer]] = {
            authorization.ALWAYS_ALLOW: AlwaysAllow,
            authorization.ALWAYS_DENY: AlwaysDeny,
            authorization.RBAC: lambda: RBACAuthorizer(sources.policy),
            authorization.NODE: lambda: _nodes(sources.graph),
            authorization.ABAC: lambda: _abac(policy_file),
        }
        wanted = {authorization.ALWAYS_ALLOW, authorization.ALWAYS_DENY, *types} - {authorization.WEBHOOK}
        self._built = {type: makers[type]() for type in sorted(wanted)}

    def build(self, configured: Iterable[AuthorizerSettings]) -> Chain:
        """Build a chain. Raises ValueError for a type that was not enabled at start-up."""
        authorizers: list[Authorizer] = [PrivilegedGroup()]
        webhooks: list[KubeconfigReviews] = []
        for settings in configured:
            authorizer = self._webhook(settings.name, settings.webhook, webhooks) if settings.webhook else None
            configured_authorizer = authorizer or self._built.get(settings.type)
            if configured_authorizer is None:
                reason = "is not allowed if it was not enabled at initial server startup"
                raise ValueError(f"authorizer type {settings.type} {reason}")
            authorizers.append(InstrumentedAuthorizer(configured_authorizer, type=settings.type, name=settings.name))
        return Chain(UnionAuthorizer(authorizers), tuple(webhooks))

    def _webhook(self, name: str, settings: WebhookSettings, webhooks: list[KubeconfigReviews]) -> Authorizer:
        # Lazy import: the HTTP client and the CEL interpreter are slow to import.
        from pilothouse.apiserver.authz.match_conditions import ReviewConditions, compiled_condition
        from pilothouse.apiserver.authz.webhook import WebhookAuthorizer, WebhookConfig
        from pilothouse.controlplane.review_webhook import KubeconfigReviews

        webhook = KubeconfigReviews(Path(settings.kubeconfig), timeout=settings.timeout)
        webhooks.append(webhook)
        config = WebhookConfig(
            name,
            settings.version,
            authorized_ttl=settings.authorized_ttl,
            unauthorized_ttl=settings.unauthorized_ttl,
            on_error=Decision.DENY if settings.denies_on_failure else Decision.NO_OPINION,
            conditions=ReviewConditions([compiled_condition(condition) for condition in settings.conditions]),
        )
        return WebhookAuthorizer(webhook, config)


def _nodes(graph: NodeGraph) -> Authorizer:
    from pilothouse.kube.node_authorizer.authorizer import NodeAuthorizer

    return NodeAuthorizer(graph)


def _abac(file: str) -> Authorizer:
    from pilothouse.kube.abac import ABACAuthorizer, read_policies

    return ABACAuthorizer(read_policies(Path(file)))


def settings_of_flags(options: authorization.AuthorizationOptions) -> tuple[AuthorizerSettings, ...]:
    webhook = WebhookSettings(
        options.webhook_config_file,
        options.webhook_version,
        authorized_ttl=options.webhook_cache_authorized_ttl,
        unauthorized_ttl=options.webhook_cache_unauthorized_ttl,
    )
    return tuple(
        AuthorizerSettings(mode, "default", webhook)
        if mode == authorization.WEBHOOK
        else AuthorizerSettings(mode, mode.lower())
        for mode in options.modes
    )
