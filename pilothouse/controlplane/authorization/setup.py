"""Authorization as the options ask for it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.controlplane.authorization.build import AuthorizerSources, ChainBuilder, settings_of_flags
from pilothouse.controlplane.options.authorization import NODE, AuthorizationOptions
from pilothouse.controlplane.options.files import content
from pilothouse.kube.node_authorizer.graph import NodeGraph
from pilothouse.kube.rbac.authorizer.policy import RBACPolicy
from pilothouse.machinery.dataclass import dataclass


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
