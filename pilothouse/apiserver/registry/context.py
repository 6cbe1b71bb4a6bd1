"""The context of a registry call: the request that the call serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource


@dataclass(slots=True)
class RequestContext:
    """Treat as immutable. Not frozen, because freezing triples the construction cost and every request constructs
    one."""

    namespace: str
    resource: GroupResource
    """The resource as the request named it; used in messages."""
    user: User
    warn: Callable[[str], None]
    verb: str = ""
    """The verb as authorization names it: create, update, patch."""
    is_own: bool = False
    """Whether the server itself made the request."""
    collects_garbage: bool = True
    """Whether a garbage collector handles the dependents of deleted objects."""
    delete_workers: int = 1
    """Maximum concurrent deletes of a deletecollection."""
    weight: Weight = field(default_factory=Weight)
    """Shared with the request: reading a large object for an update makes the request heavier."""
