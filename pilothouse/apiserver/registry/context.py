"""The context of a registry call: the request it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource


@dataclass(slots=True)
class RequestContext:
    """Nobody changes it; it is not frozen because every request has one, and that would make it three times as dear."""

    namespace: str
    resource: GroupResource
    """As the request named it: the words that messages use."""
    user: User
    warn: Callable[[str], None]
    verb: str = ""
    """As authorization names it: create, update, patch."""
    is_own: bool = False
    """Whether the server itself asks."""
    collects_garbage: bool = True
    """Whether somebody sees to the dependents of what is deleted."""
    delete_workers: int = 1
    """How many objects of a collection are deleted at once."""
    weight: Weight = field(default_factory=Weight)
    """Shared with the request: a registry that reads an object to change it makes the request heavier."""
