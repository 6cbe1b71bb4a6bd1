"""The authorizer that --authorization-mode asks for. Members of system:masters come before every mode."""

from __future__ import annotations

import logging

from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.controlplane.options.authorization import ALWAYS_ALLOW, ALWAYS_DENY, RBAC, AuthorizationOptions

log = logging.getLogger(__name__)


def build_authorizer(options: AuthorizationOptions) -> Authorizer:
    authorizers: list[Authorizer] = [PrivilegedGroup()]
    for mode in options.modes:
        if mode == ALWAYS_ALLOW:
            authorizers.append(AlwaysAllow())
        elif mode == ALWAYS_DENY:
            authorizers.append(AlwaysDeny())
        elif mode == RBAC:
            log.warning(
                "--authorization-mode=RBAC: roles are not evaluated yet, only system:masters is allowed anything"
            )
    return UnionAuthorizer(authorizers)
