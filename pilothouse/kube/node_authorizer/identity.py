"""The node that a user is, by the name and the group that kubelets have."""

from __future__ import annotations

from pilothouse.apiserver.authn.user import User

NODES_GROUP = "system:nodes"
_PREFIX = "system:node:"


def node_name_of(user: User) -> str | None:
    """Return the node's name; None for a user that is no node, empty for one that is but does not say which."""
    if NODES_GROUP not in user.groups or not user.name.startswith(_PREFIX):
        return None
    return user.name.removeprefix(_PREFIX)
