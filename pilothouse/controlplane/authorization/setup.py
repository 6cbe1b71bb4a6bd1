"""Authorization as the options ask for it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.instrumented import InstrumentedAuthorizer
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.controlplane.options.authorization import (
    ABAC,
    ALWAYS_ALLOW,
    ALWAYS_DENY,
    NODE,
    RBAC,
    WEBHOOK,
    AuthorizationOptions,
)
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
    """What RBAC goes by; somebody else fills it."""
    node_graph: NodeGraph | None
    """The graph that the node authorizer decides by, if there is one; somebody else fills it."""
    background: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)


def set_up_authorization(options: AuthorizationOptions) -> Authorization:
    """Raises ValueError, OSError."""
    sources = AuthorizerSources(RBACPolicy(), NodeGraph())
    if options.config:
        return _from_file(options.config, sources)
    builder = ChainBuilder(sources, types=options.modes, policy_file=options.policy_file)
    chain = builder.build(settings_of_flags(options))
    graph = sources.graph if NODE in options.modes else None
    background = {"authorization webhook": chain.webhooks[0].run} if chain.webhooks else {}
    return Authorization(chain.authorizer, sources.policy, graph, background)


def _from_file(file: str, sources: AuthorizerSources) -> Authorization:
    from pilothouse.controlplane.authorization.configuration import read_authorization_configuration
    from pilothouse.controlplane.authorization.reload import configured_authorizer

    data = content(file)
    types = {each.type for each in read_authorization_configuration(data)}
    authorizer, watched = configured_authorizer(Path(file), data, ChainBuilder(sources, types=types))
    graph = sources.graph if NODE in types else None
    return Authorization(
        authorizer, sources.policy, graph, {"authorization configuration": partial(authorizer.follow, watched)}
    )


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
    from pilothouse.kube.abac import ABACAuthorizer, read_policies

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
