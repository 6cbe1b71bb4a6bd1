"""The authorizer that --authorization-mode asks for. Members of system:masters come before every mode."""

from __future__ import annotations

from pilothouse.apiserver.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroup
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.authz.union import UnionAuthorizer
from pilothouse.controlplane.options.authorization import ALWAYS_ALLOW, ALWAYS_DENY, RBAC, AuthorizationOptions
from pilothouse.kube.rbac.authorizer.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.authorizer.policy import Policy


def build_authorizer(options: AuthorizationOptions, policy: Policy) -> Authorizer:
    """`policy` is what RBAC goes by; somebody else fills it."""
    modes: dict[str, Authorizer] = {
        ALWAYS_ALLOW: AlwaysAllow(),
        ALWAYS_DENY: AlwaysDeny(),
        RBAC: RBACAuthorizer(policy),
    }
    return UnionAuthorizer([PrivilegedGroup(), *(modes[mode] for mode in options.modes)])
